/*
 * Status line (RFC 9112 section 4):  HTTP-version SP 3DIGIT SP [ reason ]
 * and the length of what follows (section 6.3). The last blank is missing from many servers when
 * there is no reason; every reader takes that alike.
 */
#include <errno.h>
#include <string.h>

#include "wire/http-internal.h"

#define SWITCHING_PROTOCOLS 101
#define NO_CONTENT 204
#define NOT_MODIFIED 304

static enum aw_http_flaw read_status_line(struct aw_http_response *response, struct aw_str line)
{
	struct aw_str version, status;
	uint64_t number;

	(void)aw_str_next(&line, ' ', &version);
	if (!aw_http_version_parse(version, &response->minor))
		return AW_HTTP_FLAW_VERSION;
	if (!aw_str_next(&line, ' ', &status) || status.len != 3 ||
	    aw_str_to_u64(status, 599, &number) < 0)
		return AW_HTTP_FLAW_STATUS_LINE;
	response->status = (uint16_t)number;
	response->reason = line;
	return number >= 100 ? AW_HTTP_FLAW_NONE : AW_HTTP_FLAW_STATUS_LINE;
}

static bool has_no_body(const struct aw_http_response *response, struct aw_str method)
{
	return response->status / 100 == 1 || response->status == NO_CONTENT ||
	       response->status == NOT_MODIFIED || aw_str_is(method, "HEAD");
}

static bool is_tunnel(const struct aw_http_response *response, struct aw_str method)
{
	return response->status == SWITCHING_PROTOCOLS ||
	       (response->status / 100 == 2 && aw_str_is(method, "CONNECT"));
}

static enum aw_http_body decide_body(const struct aw_http_response *response,
				     const struct aw_http_facts *facts, struct aw_str method)
{
	if (is_tunnel(response, method))
		return AW_HTTP_BODY_TUNNEL;
	if (has_no_body(response, method))
		return AW_HTTP_BODY_NONE;
	if (facts->has_coding)
		return AW_HTTP_BODY_CHUNKED;
	if (!facts->has_length)
		return AW_HTTP_BODY_CLOSE;
	return facts->content_length > 0 ? AW_HTTP_BODY_LENGTH : AW_HTTP_BODY_NONE;
}

/* RFC 9112 6.1: no coding in HTTP/1.0, and none with a status that cannot have content. */
static bool is_coding_misplaced(const struct aw_http_response *response)
{
	return response->minor == 0 || response->status / 100 == 1 ||
	       response->status == NO_CONTENT;
}

static enum aw_http_flaw read_head(struct aw_http_response *response, struct aw_str head,
				   struct aw_str method)
{
	struct aw_http_facts facts = { .is_response = true };
	struct aw_str line;
	enum aw_http_flaw flaw;

	(void)aw_http_line_next(&head, &line);
	flaw = read_status_line(response, line);
	if (flaw != AW_HTTP_FLAW_NONE)
		return flaw;
	response->fields = head;
	flaw = aw_http_facts_read(head, &facts);
	if (flaw != AW_HTTP_FLAW_NONE)
		return flaw;
	if (facts.has_coding && is_coding_misplaced(response))
		return AW_HTTP_FLAW_CODING;
	response->content_length = facts.content_length;
	response->body = decide_body(response, &facts, method);
	response->is_interim =
		response->status / 100 == 1 && response->status != SWITCHING_PROTOCOLS;
	response->is_kept = aw_http_facts_keep(&facts, response->minor) &&
			    response->body != AW_HTTP_BODY_CLOSE &&
			    response->body != AW_HTTP_BODY_TUNNEL;
	return AW_HTTP_FLAW_NONE;
}

int aw_http_response_parse(struct aw_http_scan *scan, struct aw_str bytes, struct aw_str method,
			   struct aw_http_response *ret, enum aw_http_flaw *ret_flaw)
{
	struct aw_http_response response = { 0 };
	ssize_t len = aw_http_scan_head(scan, bytes, true, ret_flaw);

	if (len < 0)
		return (int)len;
	response.len = (size_t)len;
	*ret_flaw = read_head(&response, (struct aw_str){ bytes.ptr, response.len }, method);
	if (*ret_flaw != AW_HTTP_FLAW_NONE)
		return -EBADMSG;
	*ret = response;
	return (int)len;
}
