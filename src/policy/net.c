#include "policy/net.h"

#include <errno.h>
#include <string.h>

#define LABEL_MAX 63

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

static bool is_hex(char c)
{
	return is_digit(c) || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
}

static bool is_name_byte(char c)
{
	return is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '-' ||
	       c == '_';
}

/* No name has a colon; whatever consists of an IPv6 literal's bytes was meant as one. */
static int colon_error(struct aw_str raw)
{
	size_t colons = 0;

	for (size_t i = 0; i < raw.len; i++) {
		char c = raw.ptr[i];

		if (c == '%')
			break;
		if (!is_hex(c) && c != ':' && c != '.' && c != '[' && c != ']')
			return -EBADMSG;
		colons += c == ':';
	}
	return colons >= 2 ? -EADDRNOTAVAIL : -EBADMSG;
}

/*
 * inet_aton and the URL standard read "127.1", "0x7f.1" and "2130706433" as addresses. Every such
 * spelling ends in a number, and no top-level domain is one ("ends in a number", WHATWG URL 3.5).
 */
static bool is_number(struct aw_str label)
{
	bool hex = label.len >= 2 && label.ptr[0] == '0' && label.ptr[1] == 'x';

	for (size_t i = hex ? 2 : 0; i < label.len; i++)
		if (hex ? !is_hex(label.ptr[i]) : !is_digit(label.ptr[i]))
			return false;
	return true;
}

/* Copy in lower case; false for a byte that no name has. */
static bool lower(struct aw_str raw, char *out)
{
	for (size_t i = 0; i < raw.len; i++) {
		char c = raw.ptr[i];

		if (c != '.' && !is_name_byte(c))
			return false;
		out[i] = (char)(c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c);
	}
	out[raw.len] = '\0';
	return true;
}

int aw_net_normalise(struct aw_str raw, char *out)
{
	struct aw_str rest, label = { NULL, 0 };

	if (raw.len > 0 && memchr(raw.ptr, ':', raw.len) != NULL)
		return colon_error(raw);
	if (raw.len > 0 && raw.ptr[raw.len - 1] == '.')
		raw.len--;
	if (raw.len == 0 || raw.len > AW_NET_NAME_MAX || !lower(raw, out))
		return -EBADMSG;
	rest = (struct aw_str){ out, raw.len };
	while (aw_str_next(&rest, '.', &label))
		if (label.len == 0 || label.len > LABEL_MAX)
			return -EBADMSG;
	return is_number(label) ? -EADDRNOTAVAIL : (int)raw.len;
}

static bool has_port(const uint16_t *ports, size_t count, uint16_t port)
{
	for (size_t i = 0; i < count; i++)
		if (ports[i] == port)
			return true;
	return false;
}

static bool is_blocked(const struct aw_net *net, uint16_t port)
{
	return has_port(net->blocked, net->blocked_count, port);
}

static bool is_listening_port(const struct aw_net *net, uint16_t port)
{
	return has_port(net->ports, net->port_count, port) && !is_blocked(net, port);
}

static bool has_name(const struct aw_net_rule *rule, struct aw_str name)
{
	struct aw_str own = { rule->name, strnlen(rule->name, AW_NET_NAME_MAX) };
	struct aw_str tail;

	if (own.len > name.len)
		return false;
	if (own.len == name.len)
		return rule->form != AW_NET_BELOW && aw_str_is_equal(own, name);
	if (rule->form == AW_NET_EXACT || name.ptr[name.len - own.len - 1] != '.')
		return false;
	tail = (struct aw_str){ name.ptr + name.len - own.len, own.len };
	return aw_str_is_equal(own, tail);
}

/* A denial without a port denies every port; one with a port leaves the name itself resolvable. */
static bool is_denying(const struct aw_net_rule *rule, uint16_t port)
{
	return rule->is_denied && (rule->port == 0 || rule->port == port);
}

/* Port 0 asks whether any port at all is left: a name that nothing could connect to is not granted. */
static bool grants_port(const struct aw_net *net, const struct aw_net_rule *rule, uint16_t port)
{
	if (port != 0)
		return rule->port == port ||
		       (rule->port == 0 && has_port(net->ports, net->port_count, port));
	if (rule->port != 0)
		return !is_blocked(net, rule->port);
	for (size_t i = 0; i < net->port_count; i++)
		if (!is_blocked(net, net->ports[i]))
			return true;
	return false;
}

static void decide_grants(const struct aw_net *net, struct aw_str name, uint16_t port,
			  struct aw_net_verdict *ret)
{
	for (uint32_t i = 0; i < net->rule_count; i++) {
		const struct aw_net_rule *rule = &net->rules[i];

		if (!has_name(rule, name))
			continue;
		if (is_denying(rule, port)) {
			*ret = (struct aw_net_verdict){ AW_NET_DENIED, (int)i, false };
			return;
		}
		if (rule->is_denied)
			continue;
		if (grants_port(net, rule, port)) {
			/* Two grants may name it; either may be the one that accepts private answers. */
			ret->may_be_private |= rule->may_be_private != 0;
			if (ret->reason != AW_NET_GRANTED)
				ret->rule = (int)i;
			ret->reason = AW_NET_GRANTED;
		} else if (ret->reason == AW_NET_NOT_GRANTED) {
			ret->reason = AW_NET_PORT_NOT_GRANTED;
			ret->rule = (int)i;
		}
	}
}

void aw_net_decide(const struct aw_net *net, struct aw_str name, uint16_t port,
		   struct aw_net_verdict *ret)
{
	*ret = (struct aw_net_verdict){ AW_NET_NOT_GRANTED, -1, false };
	decide_grants(net, name, port, ret);
	if (ret->reason == AW_NET_GRANTED || ret->reason == AW_NET_PORT_NOT_GRANTED)
		if (port != 0 && is_blocked(net, port))
			ret->reason = AW_NET_PORT_BLOCKED;
	if (ret->reason != AW_NET_GRANTED)
		ret->may_be_private = false;
}

static size_t add_port(uint16_t *ports, size_t count, size_t max, uint16_t port)
{
	size_t at = count;

	if (has_port(ports, count, port) || count == max)
		return count;
	for (; at > 0 && ports[at - 1] > port; at--)
		ports[at] = ports[at - 1];
	ports[at] = port;
	return count + 1;
}

size_t aw_net_listen_ports(const struct aw_net *net, uint16_t *ret, size_t max)
{
	size_t count = 0;
	bool uses_allowed = false;

	for (uint32_t i = 0; i < net->rule_count; i++) {
		const struct aw_net_rule *rule = &net->rules[i];

		if (rule->is_denied)
			continue;
		if (rule->port == 0)
			uses_allowed = true;
		else if (!is_blocked(net, rule->port))
			count = add_port(ret, count, max, rule->port);
	}
	for (size_t i = 0; uses_allowed && i < net->port_count; i++)
		if (is_listening_port(net, net->ports[i]))
			count = add_port(ret, count, max, net->ports[i]);
	return count;
}

size_t aw_net_size(const struct aw_net *net)
{
	return offsetof(struct aw_net, rules) + net->rule_count * sizeof(net->rules[0]);
}

int aw_net_add(struct aw_net *net, const struct aw_net_rule *rule)
{
	for (uint32_t i = 0; i < net->rule_count; i++) {
		struct aw_net_rule *old = &net->rules[i];

		if (old->form != rule->form || old->is_denied != rule->is_denied ||
		    old->port != rule->port || strcmp(old->name, rule->name) != 0)
			continue;
		if (old->may_be_private >= rule->may_be_private)
			return 0;
		old->may_be_private = rule->may_be_private;
		return 1;
	}
	if (net->rule_count == AW_NET_RULES_MAX)
		return -ENOSPC;
	net->rules[net->rule_count++] = *rule;
	return 1;
}

static bool are_ports_sane(const uint16_t *ports, uint16_t count)
{
	if (count > AW_NET_PORTS_MAX)
		return false;
	for (uint16_t i = 0; i < count; i++)
		if (ports[i] == 0 || (i > 0 && ports[i] <= ports[i - 1]))
			return false;
	return true;
}

static bool is_rule_sane(const struct aw_net_rule *rule)
{
	struct aw_str name = { rule->name, strnlen(rule->name, sizeof(rule->name)) };
	char normal[AW_NET_NAME_MAX + 1];

	if (name.len == sizeof(rule->name) || aw_net_normalise(name, normal) != (int)name.len)
		return false;
	return strcmp(normal, rule->name) == 0 && rule->form >= AW_NET_EXACT &&
	       rule->form <= AW_NET_APEX_AND_BELOW && rule->layer >= AW_NET_LAYER_PRESET &&
	       rule->layer <= AW_NET_LAYER_PROJECT && rule->is_denied <= 1 &&
	       rule->may_be_private <= 1 && rule->reserved == 0;
}

int aw_net_check(const void *bytes, size_t len, struct aw_error *err)
{
	const struct aw_net *net = bytes;

	if (len < offsetof(struct aw_net, rules))
		return aw_refuse(err, EBADMSG, "network policy of %zu bytes is cut short", len);
	if (net->magic != AW_NET_MAGIC || net->size != sizeof(struct aw_net))
		return aw_refuse(err, EBADMSG, "network policy is of another build");
	if (net->rule_count > AW_NET_RULES_MAX || len < aw_net_size(net))
		return aw_refuse(err, EBADMSG, "network policy has %u rules in %zu bytes",
				 net->rule_count, len);
	if (!are_ports_sane(net->ports, net->port_count) ||
	    !are_ports_sane(net->blocked, net->blocked_count))
		return aw_refuse(err, EBADMSG, "network policy has a malformed port list");
	for (uint32_t i = 0; i < net->rule_count; i++)
		if (!is_rule_sane(&net->rules[i]))
			return aw_refuse(err, EBADMSG, "network policy rule %u is malformed", i);
	return 0;
}

const char *aw_net_reason_text(enum aw_net_reason reason)
{
	static const char *const texts[] = {
		[AW_NET_GRANTED] = "granted",
		[AW_NET_NOT_GRANTED] = "not granted",
		[AW_NET_DENIED] = "denied",
		[AW_NET_PORT_BLOCKED] = "port blocked",
		[AW_NET_PORT_NOT_GRANTED] = "port not granted",
		[AW_NET_LITERAL] = "address instead of a name",
		[AW_NET_MALFORMED] = "malformed name",
	};

	if (reason < AW_NET_GRANTED || reason > AW_NET_MALFORMED)
		return "unknown";
	return texts[reason];
}

const char *aw_net_layer_text(enum aw_net_layer layer)
{
	static const char *const texts[] = {
		[AW_NET_LAYER_PRESET] = "preset",
		[AW_NET_LAYER_AGENT] = "agent profile",
		[AW_NET_LAYER_USER] = "user policy",
		[AW_NET_LAYER_DIRECTORY] = "user policy for this directory",
		[AW_NET_LAYER_COMMAND] = "command line",
		[AW_NET_LAYER_SESSION] = "session",
		[AW_NET_LAYER_SYSTEM] = "system policy",
		[AW_NET_LAYER_PROJECT] = "project policy",
	};

	if (layer < AW_NET_LAYER_PRESET || layer > AW_NET_LAYER_PROJECT)
		return "unknown";
	return texts[layer];
}

void aw_net_rule_format(const struct aw_net_rule *rule, char *out, size_t size)
{
	const char *prefix = rule->form == AW_NET_BELOW            ? "*."
			     : rule->form == AW_NET_APEX_AND_BELOW ? "."
								   : "";
	size_t prefix_len = strlen(prefix), len = strlen(rule->name);

	/* Each start writes every rule once: without printf where there is nothing to convert. */
	if (rule->port == 0 && prefix_len + len < size) {
		memcpy(out, prefix, prefix_len);
		memcpy(out + prefix_len, rule->name, len + 1);
	} else if (rule->port == 0) {
		(void)aw_str_format(out, size, "%s%s", prefix, rule->name);
	} else {
		(void)aw_str_format(out, size, "%s%s:%u", prefix, rule->name, rule->port);
	}
}
