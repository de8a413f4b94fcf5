#include "store/head.h"

#include <errno.h>

#include "base/own.h"
#include "event/flat.h"
#include "store/file.h"
#include "store/segment-internal.h"

#define VERSION 1

int aw_head_write(int dir_fd, const char *session, const struct aw_head *head, struct aw_error *err)
{
	char hex[AW_CHAIN_HEX_LEN + 1];
	struct aw_flat flat;

	aw_chain_to_hex(&head->last, hex);
	aw_flat_begin(&flat, 0, AW_FLAT_MAX);
	aw_flat_add_u64(&flat, "v", VERSION);
	aw_flat_add_str(&flat, "session", aw_str_from(session));
	aw_flat_add_u64(&flat, "segment", head->segment);
	aw_flat_add_u64(&flat, "seq", head->seq);
	aw_flat_add_str(&flat, "hash", aw_str_from(hex));
	return aw_file_replace(dir_fd, AW_HEAD_NAME, aw_flat_end(&flat, (struct aw_str){ 0 }), err);
}

static bool get(const struct aw_flat_object *object, const char *key, uint64_t min, uint64_t max,
		uint64_t *ret)
{
	return aw_flat_get_u64(aw_flat_find(object, key), ret) == 0 && *ret >= min && *ret <= max;
}

static int parse(struct aw_str text, struct aw_head *ret)
{
	const struct aw_flat_field *hash;
	struct aw_flat_object object;
	struct aw_head head = { 0 };
	uint64_t version, segment;

	if (!aw_str_ends(text, "\n"))
		return -EBADMSG;
	text.len--;
	if (aw_flat_parse(text, &object) < 0 || !get(&object, "v", VERSION, VERSION, &version) ||
	    !get(&object, "segment", 1, AW_SEGMENT_MAX, &segment) ||
	    !get(&object, "seq", 1, UINT64_MAX, &head.seq))
		return -EBADMSG;
	hash = aw_flat_find(&object, "hash");
	if (hash == NULL || hash->type != AW_FLAT_STR ||
	    aw_chain_from_hex(hash->raw, &head.last) < 0)
		return -EBADMSG;
	head.segment = (uint32_t)segment;
	*ret = head;
	return 0;
}

int aw_head_read(int dir_fd, struct aw_head *ret, struct aw_error *err)
{
	autofree char *text = NULL;
	ssize_t n = aw_file_read(dir_fd, AW_HEAD_NAME, AW_FLAT_MAX, &text, err);

	if (n < 0)
		return (int)n;
	if (parse((struct aw_str){ text, (size_t)n }, ret) < 0)
		return aw_refuse(err, EBADMSG, "'" AW_HEAD_NAME "' is malformed");
	return 0;
}
