#include "event/record.h"

#include <errno.h>
#include <string.h>

#include "event/time.h"

static const struct {
	const char *key;
	enum aw_flat_type type;
} head[AW_RECORD_FIRST] = {
	{ "v", AW_FLAT_INT },       { "seq", AW_FLAT_INT },  { "time", AW_FLAT_STR },
	{ "session", AW_FLAT_STR }, { "kind", AW_FLAT_STR },
};

static bool is_field(const struct aw_flat_field *field, const char *key, enum aw_flat_type type)
{
	return field->type == type && aw_str_is(field->key, key);
}

static bool has_form(const struct aw_flat_object *object)
{
	if (object->count < AW_RECORD_FIRST + AW_RECORD_BEHIND)
		return false;
	for (size_t i = 0; i < AW_RECORD_FIRST; i++)
		if (!is_field(&object->field[i], head[i].key, head[i].type))
			return false;
	return is_field(&object->field[object->count - 1], "prev", AW_FLAT_STR);
}

static bool is_made_of(struct aw_str s, const char *accepted)
{
	for (size_t i = 0; i < s.len; i++)
		if (s.ptr[i] == '\0' || strchr(accepted, s.ptr[i]) == NULL)
			return false;
	return s.len > 0;
}

static bool is_other_version(const struct aw_flat_field *first)
{
	uint64_t version;

	return is_field(first, "v", AW_FLAT_INT) && aw_flat_get_u64(first, &version) == 0 &&
	       version != AW_EVENT_VERSION;
}

static bool parse_fixed(const struct aw_flat_object *object, struct aw_record *ret)
{
	const struct aw_flat_field *field = object->field;
	uint64_t version;

	if (aw_flat_get_u64(&field[0], &version) < 0 || aw_flat_get_u64(&field[1], &ret->seq) < 0 ||
	    aw_time_parse(field[2].raw, &ret->wall_ns) < 0 ||
	    aw_chain_from_hex(field[object->count - 1].raw, &ret->prev) < 0)
		return false;
	ret->session = field[3].raw;
	ret->kind_name = field[4].raw;
	ret->kind = aw_event_kind_find(ret->kind_name);
	return ret->session.len == AW_EVENT_SESSION_LEN &&
	       is_made_of(ret->session, "0123456789abcdefghijklmnopqrstuvwxyz") &&
	       is_made_of(ret->kind_name, "abcdefghijklmnopqrstuvwxyz._");
}

int aw_record_parse(struct aw_str line, struct aw_record *ret)
{
	if (line.len >= AW_FLAT_MAX || aw_flat_parse(line, &ret->object) < 0)
		return -EBADMSG;
	if (is_other_version(&ret->object.field[0]))
		return -EPROTONOSUPPORT;
	return has_form(&ret->object) && parse_fixed(&ret->object, ret) ? 0 : -EBADMSG;
}
