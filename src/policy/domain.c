#include "policy/domain.h"

#include <errno.h>
#include <string.h>

static int refuse(struct aw_error *err, struct aw_str text, const char *why)
{
	char shown[160];

	(void)aw_str_escape(text, shown, sizeof(shown));
	return aw_refuse(err, EBADMSG, "\"%s\" %s", shown, why);
}

static bool has_byte(struct aw_str s, char c)
{
	return s.len > 0 && memchr(s.ptr, c, s.len) != NULL;
}

static bool is_all(struct aw_str s, const char *bytes)
{
	for (size_t i = 0; i < s.len; i++)
		if (s.ptr[i] == '\0' || strchr(bytes, s.ptr[i]) == NULL)
			return false;
	return true;
}

static bool has_high_byte(struct aw_str s)
{
	for (size_t i = 0; i < s.len; i++)
		if ((unsigned char)s.ptr[i] >= 0x80)
			return true;
	return false;
}

/* Spellings that are no name at all, each with what its writer most likely wants. */
static const char *shape_error(struct aw_str text)
{
	if (text.len == 0)
		return "is empty: it would mean every name";
	if (memmem(text.ptr, text.len, "://", 3) != NULL)
		return "is a URL: write the host alone, without scheme and path";
	if (has_byte(text, '@'))
		return "carries user information: write the host alone";
	if (has_byte(text, '/'))
		return "carries a path: write the host alone";
	if (has_high_byte(text))
		return "is not ASCII: write the name in its xn-- form (IDNA A-label)";
	return NULL;
}

static const char *split_port(struct aw_str *text, uint16_t *ret)
{
	const char *colon = memchr(text->ptr, ':', text->len);
	struct aw_str digits;
	uint64_t port;

	*ret = 0;
	if (text->ptr[0] == '[' ||
	    (colon != NULL &&
	     memchr(colon + 1, ':', text->len - (size_t)(colon + 1 - text->ptr)) != NULL))
		return "is an address: addresses are never granted, write the name";
	if (colon == NULL)
		return NULL;
	digits.ptr = colon + 1;
	digits.len = text->len - (size_t)(digits.ptr - text->ptr);
	if (aw_str_to_u64(digits, 65535, &port) < 0 || port == 0)
		return "has a malformed port: write host:PORT with a number from 1 to 65535";
	text->len = (size_t)(colon - text->ptr);
	*ret = (uint16_t)port;
	return NULL;
}

static enum aw_net_form split_form(struct aw_str *text)
{
	size_t prefix = aw_str_starts(*text, "*.") ? 2 : aw_str_starts(*text, ".") ? 1 : 0;

	text->ptr += prefix;
	text->len -= prefix;
	return prefix == 2 ? AW_NET_BELOW : prefix == 1 ? AW_NET_APEX_AND_BELOW : AW_NET_EXACT;
}

static const char *name_error(struct aw_str name, char *normal)
{
	int r;

	if (has_byte(name, '*'))
		return "has a * that is not its first label: write *.NAME or each name";
	r = aw_net_normalise(name, normal);
	if (r == -EADDRNOTAVAIL)
		return "is an address: addresses are never granted, write the name";
	if (r < 0)
		return "is not a host name: labels of 1-63 letters, digits, hyphens and "
		       "underscores, 253 bytes in all";
	return NULL;
}

static const char *grant_error(struct aw_str name, uint8_t form)
{
	if (aw_str_is(name, "localhost") || aw_str_ends(name, ".localhost"))
		return "is the cell's own loopback, not the host's: nothing to grant";
	if (form != AW_NET_EXACT && aw_domain_is_public_suffix(name))
		return "would grant names that anyone can get: name each host";
	return NULL;
}

int aw_domain_parse(struct aw_str text, enum aw_domain_use use, struct aw_domain *ret,
		    struct aw_error *err)
{
	struct aw_domain domain = { .port = 0 };
	struct aw_str rest = text;
	const char *why;

	why = shape_error(text);
	if (why == NULL)
		why = split_port(&rest, &domain.port);
	if (why == NULL && is_all(rest, "*."))
		why = "means every name: name each host";
	if (why == NULL) {
		domain.form = (uint8_t)split_form(&rest);
		why = name_error(rest, domain.name);
	}
	if (why == NULL && use == AW_DOMAIN_GRANT)
		why = grant_error(aw_str_from(domain.name), domain.form);
	if (why != NULL)
		return refuse(err, text, why);
	*ret = domain;
	return 0;
}

struct aw_net_rule aw_domain_rule(const struct aw_domain *domain, enum aw_domain_use use,
				  enum aw_net_layer layer)
{
	struct aw_net_rule rule = {
		.form = domain->form,
		.layer = (uint8_t)layer,
		.is_denied = use == AW_DOMAIN_DENY,
		.port = domain->port,
	};

	memcpy(rule.name, domain->name, sizeof(rule.name));
	return rule;
}
