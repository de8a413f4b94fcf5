#include "event/event.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "event/time.h"

static const struct aw_event_info kinds[] = {
	[AW_EVENT_UNKNOWN] = { "unknown", AW_SEVERITY_NOTICE, 0, 0 },
#define KIND_ROW(kind, name, severity, sources, traits) \
	[AW_EVENT_##kind] = { name, AW_SEVERITY_##severity, sources, traits },
	AW_EVENT_KINDS(KIND_ROW)
#undef KIND_ROW
};

const struct aw_event_info *aw_event_info(enum aw_event_kind kind)
{
	assert(kind < AW_EVENT_KIND_COUNT);
	return &kinds[kind];
}

enum aw_event_kind aw_event_kind_find(struct aw_str name)
{
	for (size_t i = AW_EVENT_UNKNOWN + 1; i < AW_EVENT_KIND_COUNT; i++)
		if (aw_str_is(name, kinds[i].name))
			return (enum aw_event_kind)i;
	return AW_EVENT_UNKNOWN;
}

bool aw_event_may_come_from(enum aw_event_kind kind, enum aw_event_source source)
{
	return (aw_event_info(kind)->sources & (unsigned)source) != 0;
}

const char *aw_event_severity_name(enum aw_event_severity severity)
{
	static const char *const names[] = {
		[AW_SEVERITY_INFO] = "info",
		[AW_SEVERITY_NOTICE] = "notice",
		[AW_SEVERITY_DENIED] = "denied",
		[AW_SEVERITY_BREACH] = "breach",
	};

	assert(severity >= AW_SEVERITY_INFO && severity <= AW_SEVERITY_BREACH);
	return names[severity];
}

/* Kind and prev go through the flat object, which asserts that a key comes once. */
static void check_key(const char *key)
{
	static const char *const fixed[] = { "v", "seq", "time", "session", "prev" };

	for (size_t i = 0; i < sizeof(fixed) / sizeof(fixed[0]); i++)
		assert(strcmp(key, fixed[i]) != 0);
}

void aw_event_begin(struct aw_event *event, enum aw_event_kind kind, uint64_t wall_ns)
{
	assert(kind != AW_EVENT_UNKNOWN);
	event->kind = kind;
	event->wall_ns = wall_ns;
	aw_flat_begin(&event->flat, AW_EVENT_HEAD_MAX, AW_EVENT_VALUE_MAX);
	aw_flat_add_str(&event->flat, "kind", aw_str_from(aw_event_info(kind)->name));
}

void aw_event_add_str(struct aw_event *event, const char *key, struct aw_str value)
{
	check_key(key);
	aw_flat_add_str(&event->flat, key, value);
}

void aw_event_add_strv(struct aw_event *event, const char *key, const struct aw_str *values,
		       size_t count)
{
	check_key(key);
	aw_flat_add_strv(&event->flat, key, values, count);
}

void aw_event_add_u64(struct aw_event *event, const char *key, uint64_t value)
{
	check_key(key);
	aw_flat_add_u64(&event->flat, key, value);
}

void aw_event_add_i64(struct aw_event *event, const char *key, int64_t value)
{
	check_key(key);
	aw_flat_add_i64(&event->flat, key, value);
}

void aw_event_add_bool(struct aw_event *event, const char *key, bool value)
{
	check_key(key);
	aw_flat_add_bool(&event->flat, key, value);
}

struct aw_str aw_event_seal(struct aw_event *event, const char *session, uint64_t seq,
			    const struct aw_chain *prev)
{
	char head[AW_EVENT_HEAD_MAX], time[AW_TIME_LEN + 1], hex[AW_CHAIN_HEX_LEN + 1];
	int n;

	aw_time_format(event->wall_ns, time);
	aw_chain_to_hex(prev, hex);
	aw_flat_add_str(&event->flat, "prev", (struct aw_str){ hex, AW_CHAIN_HEX_LEN });
	n = snprintf(head, sizeof(head),
		     "{\"v\":%d,\"seq\":%llu,\"time\":\"%s\",\"session\":\"%s\"", AW_EVENT_VERSION,
		     (unsigned long long)seq, time, session);
	assert(n > 0 && (size_t)n < sizeof(head));
	return aw_flat_end(&event->flat, (struct aw_str){ head, (size_t)n });
}
