/*
 * Field lines (RFC 9112 section 5) and what a few of them say about the message itself: whom it is
 * for, where it ends, whether the connection stays. One reader per field, in one table.
 */
#include <errno.h>

#include "base/own.h"
#include "wire/http-internal.h"

/* More options than any client sends; keeps the work of dropping what they name small. */
#define CONNECTION_OPTIONS_MAX 32

static enum aw_http_flaw read_host(struct aw_http_facts *facts, struct aw_str value)
{
	if (facts->is_response)
		return AW_HTTP_FLAW_NONE;
	if (facts->has_host)
		return AW_HTTP_FLAW_HOST_TWICE;
	facts->has_host = true;
	facts->host = value;
	return AW_HTTP_FLAW_NONE;
}

static enum aw_http_flaw read_length(struct aw_http_facts *facts, struct aw_str value)
{
	if (facts->has_length)
		return AW_HTTP_FLAW_LENGTH_TWICE;
	facts->has_length = true;
	if (aw_str_to_u64(value, INT64_MAX, &facts->content_length) < 0)
		return AW_HTTP_FLAW_LENGTH;
	return AW_HTTP_FLAW_NONE;
}

static enum aw_http_flaw read_coding(struct aw_http_facts *facts, struct aw_str value)
{
	if (facts->has_coding || !aw_http_token_is(value, "chunked"))
		return AW_HTTP_FLAW_CODING;
	facts->has_coding = true;
	return AW_HTTP_FLAW_NONE;
}

/*
 * Servers do send "Connection: Transfer-Encoding"; it is harmless there, because the framing is
 * never dropped. A client that asks a proxy to drop Host or the framing is after a difference.
 */
static bool is_option_forbidden(struct aw_str option)
{
	static const char *const names[] = { "host", "content-length", "transfer-encoding" };

	for (size_t i = 0; i < AW_ARRAY_LEN(names); i++)
		if (aw_http_token_is(option, names[i]))
			return true;
	return false;
}

static enum aw_http_flaw read_connection(struct aw_http_facts *facts, struct aw_str value)
{
	struct aw_str option;

	while (aw_str_next(&value, ',', &option)) {
		option = aw_str_trim(option);
		if (++facts->options > CONNECTION_OPTIONS_MAX)
			return AW_HTTP_FLAW_CONNECTION;
		if (option.len == 0)
			continue;
		if (!aw_http_is_token(option))
			return AW_HTTP_FLAW_CONNECTION;
		if (!facts->is_response && is_option_forbidden(option))
			return AW_HTTP_FLAW_CONNECTION;
		facts->is_close |= aw_http_token_is(option, "close");
		facts->is_keep_alive |= aw_http_token_is(option, "keep-alive");
		facts->is_upgrade |= aw_http_token_is(option, "upgrade");
	}
	return AW_HTTP_FLAW_NONE;
}

/* A list of protocols, or two fields, leaves the server a choice that we would not know of. */
static enum aw_http_flaw read_upgrade(struct aw_http_facts *facts, struct aw_str value)
{
	facts->is_websocket = !facts->has_upgrade && aw_http_token_is(value, "websocket");
	facts->has_upgrade = true;
	return AW_HTTP_FLAW_NONE;
}

static enum aw_http_flaw read_expect(struct aw_http_facts *facts, struct aw_str value)
{
	facts->is_continue_wanted |= aw_http_token_is(value, "100-continue");
	return AW_HTTP_FLAW_NONE;
}

static const struct {
	const char *name;
	enum aw_http_flaw (*read)(struct aw_http_facts *facts, struct aw_str value);
} readers[] = {
	{ "host", read_host },
	{ "content-length", read_length },
	{ "transfer-encoding", read_coding },
	{ "connection", read_connection },
	{ "upgrade", read_upgrade },
	{ "expect", read_expect },
};

static enum aw_http_flaw check_name(struct aw_str line, struct aw_str name)
{
	if (name.len > 0 && (name.ptr[name.len - 1] == ' ' || name.ptr[name.len - 1] == '\t'))
		return AW_HTTP_FLAW_SPACE_BEFORE_COLON;
	/* Without a colon the name is the whole line. */
	if (name.len == line.len || !aw_http_is_token(name))
		return AW_HTTP_FLAW_FIELD_NAME;
	return AW_HTTP_FLAW_NONE;
}

static enum aw_http_flaw read_field(struct aw_http_facts *facts, struct aw_str name,
				    struct aw_str value)
{
	for (size_t i = 0; i < AW_ARRAY_LEN(readers); i++)
		if (aw_http_token_is(name, readers[i].name))
			return readers[i].read(facts, value);
	return AW_HTTP_FLAW_NONE;
}

enum aw_http_flaw aw_http_facts_read(struct aw_str fields, struct aw_http_facts *facts)
{
	struct aw_str lines = fields, line, name, value;
	enum aw_http_flaw flaw;

	while (aw_http_field_next(&fields, &name, &value)) {
		(void)aw_http_line_next(&lines, &line);
		flaw = check_name(line, name);
		if (flaw == AW_HTTP_FLAW_NONE)
			flaw = read_field(facts, name, value);
		if (flaw != AW_HTTP_FLAW_NONE)
			return flaw;
	}
	return facts->has_length && facts->has_coding ? AW_HTTP_FLAW_LENGTH_AND_CODING
						      : AW_HTTP_FLAW_NONE;
}

bool aw_http_facts_keep(const struct aw_http_facts *facts, uint8_t minor)
{
	return !facts->is_close && (minor == 1 || facts->is_keep_alive);
}

bool aw_http_version_parse(struct aw_str text, uint8_t *ret_minor)
{
	if (!aw_str_is(text, "HTTP/1.1") && !aw_str_is(text, "HTTP/1.0"))
		return false;
	*ret_minor = (uint8_t)(text.ptr[text.len - 1] - '0');
	return true;
}
