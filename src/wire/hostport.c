#include "wire/hostport.h"

#include <arpa/inet.h>
#include <errno.h>
#include <string.h>

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

static bool is_hex_digit(char c)
{
	return is_digit(c) || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
}

static bool is_name_byte(char c)
{
	return is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '-' ||
	       c == '_';
}

static bool is_all(struct aw_str s, bool (*is_kind)(char))
{
	for (size_t i = 0; i < s.len; i++)
		if (!is_kind(s.ptr[i]))
			return false;
	return true;
}

/* Without the one dot that marks a name as absolute. */
static struct aw_str without_last_dot(struct aw_str name)
{
	if (name.len > 0 && name.ptr[name.len - 1] == '.')
		name.len--;
	return name;
}

int aw_host_label_check(struct aw_str label)
{
	if (label.len == 0 || label.len > AW_HOST_LABEL_MAX || !is_all(label, is_name_byte))
		return -EBADMSG;
	return 0;
}

int aw_host_name_check(struct aw_str name)
{
	struct aw_str rest = without_last_dot(name), label;

	if (rest.len == 0 || rest.len > AW_HOST_NAME_MAX)
		return -EBADMSG;
	while (aw_str_next(&rest, '.', &label))
		if (aw_host_label_check(label) < 0)
			return -EBADMSG;
	return 0;
}

/*
 * inet_aton and the URL standard ("ends in a number") take a host for an IPv4 address by its last
 * label. No public name ends so, hence nothing real is lost.
 */
static bool is_last_label_number(struct aw_str name)
{
	struct aw_str label = without_last_dot(name);
	size_t start = label.len;

	while (start > 0 && label.ptr[start - 1] != '.')
		start--;
	label.ptr += start;
	label.len -= start;
	if (label.len >= 2 && label.ptr[0] == '0' && (label.ptr[1] == 'x' || label.ptr[1] == 'X'))
		return is_all((struct aw_str){ label.ptr + 2, label.len - 2 }, is_hex_digit);
	return is_all(label, is_digit);
}

/* inet_pton takes just the one standard spelling of each family; for IPv4 that excludes leading zeros. */
static bool is_address(int family, struct aw_str s, uint8_t *address)
{
	char text[INET6_ADDRSTRLEN];

	if (s.len >= sizeof(text) || memchr(s.ptr, '\0', s.len) != NULL)
		return false;
	memcpy(text, s.ptr, s.len);
	text[s.len] = '\0';
	return inet_pton(family, text, address) == 1;
}

int aw_host_parse(struct aw_str text, struct aw_host *ret)
{
	struct aw_host host = { .text = text, .kind = AW_HOST_NAME };

	if (text.len >= 2 && text.ptr[0] == '[' && text.ptr[text.len - 1] == ']') {
		host.text = (struct aw_str){ text.ptr + 1, text.len - 2 };
		host.kind = AW_HOST_IPV6;
		if (!is_address(AF_INET6, host.text, host.address))
			return -EBADMSG;
		*ret = host;
		return 0;
	}
	if (aw_host_name_check(text) < 0)
		return -EBADMSG;
	if (is_address(AF_INET, text, host.address))
		host.kind = AW_HOST_IPV4;
	else if (is_last_label_number(text))
		host.kind = AW_HOST_ODD_NUMBER;
	*ret = host;
	return 0;
}

/* Split at the colon in front of the port: the first one behind an IPv6 literal's bracket. */
static bool split_port(struct aw_str text, struct aw_str *ret_host, struct aw_str *ret_port)
{
	size_t from = 0;

	if (text.len > 0 && text.ptr[0] == '[')
		while (from < text.len && text.ptr[from] != ']')
			from++;
	for (size_t i = from; i < text.len; i++) {
		if (text.ptr[i] != ':')
			continue;
		*ret_host = (struct aw_str){ text.ptr, i };
		*ret_port = (struct aw_str){ text.ptr + i + 1, text.len - i - 1 };
		return true;
	}
	*ret_host = text;
	return false;
}

int aw_hostport_parse(struct aw_str text, uint16_t default_port, struct aw_hostport *ret)
{
	struct aw_hostport result = { 0 };
	struct aw_str host, port;
	uint64_t number = default_port;

	if (split_port(text, &host, &port) && aw_str_to_u64(port, UINT16_MAX, &number) < 0)
		return -EBADMSG;
	if (number == 0 || aw_host_parse(host, &result.host) < 0)
		return -EBADMSG;
	result.port = (uint16_t)number;
	*ret = result;
	return 0;
}

static char to_lower(char c)
{
	return (char)(c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c);
}

bool aw_host_is_same(struct aw_str a, struct aw_str b)
{
	if (a.len != b.len)
		return false;
	for (size_t i = 0; i < a.len; i++)
		if (to_lower(a.ptr[i]) != to_lower(b.ptr[i]))
			return false;
	return true;
}

bool aw_host_is_literal(const struct aw_host *host)
{
	return host->kind != AW_HOST_NAME;
}
