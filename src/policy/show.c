/*
 * The effective policy as text. Order and spelling are fixed, because the digest is of exactly these
 * bytes: `warden policy show --effective | sha256sum` gives what the journal says.
 */
#include <sodium/crypto_hash_sha256.h>
#include <sodium/utils.h>
#include <stdarg.h>
#include <string.h>

#include "base/own.h"
#include "policy/domain.h"
#include "policy/layer-internal.h"
#include "policy/show-internal.h"

#define SHOW_MAX (size_t)(8 * 1024 * 1024)

/* Writes values with commas between and comments behind; the first failure stays. */
struct writer {
	struct aw_buf *out;
	const char *preset;
	unsigned depth;
	bool has_origins, needs_comma;
	const struct aw_policy_origin *pending; /* to be told at the end of the line */
	int status;
};

static void put(struct writer *w, const char *format, ...) __attribute__((format(printf, 2, 3)));

static void put(struct writer *w, const char *format, ...)
{
	char text[64];
	va_list args;

	va_start(args, format);
	(void)vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	if (w->status >= 0)
		w->status = aw_buf_append_str(w->out, text);
}

static void put_text(struct writer *w, const char *text)
{
	if (w->status >= 0)
		w->status = aw_buf_append_str(w->out, text);
}

/* JSON string: what must be escaped is, everything else stays the UTF-8 it was. */
static void put_string(struct writer *w, const char *text)
{
	size_t plain;

	put_text(w, "\"");
	while (*text != '\0') {
		plain = 0;
		while ((unsigned char)text[plain] >= 0x20 && text[plain] != '"' &&
		       text[plain] != '\\' && text[plain] != 0x7f)
			plain++;
		if (w->status >= 0)
			w->status = aw_buf_append(w->out, text, plain);
		text += plain;
		if (*text != '\0')
			put(w, "\\u%04x", (unsigned)(unsigned char)*text++);
	}
	put_text(w, "\"");
}

static void put_origin(struct writer *w)
{
	char text[320];

	if (w->has_origins && w->pending != NULL) {
		aw_policy_origin_format(w->pending, text, sizeof(text));
		put_text(w, " // ");
		put_text(w, text);
	}
	w->pending = NULL;
}

/* Begin the line of the next value. */
static void next_line(struct writer *w)
{
	if (w->needs_comma)
		put_text(w, ",");
	put_origin(w);
	put_text(w, "\n");
	for (unsigned i = 0; i < w->depth; i++)
		put_text(w, "  ");
	w->needs_comma = true;
}

static void put_key(struct writer *w, const char *key)
{
	next_line(w);
	if (key != NULL) {
		put_string(w, key);
		put_text(w, ": ");
	}
}

static void begin(struct writer *w, const char *key, const char *bracket)
{
	put_key(w, key);
	put_text(w, bracket);
	w->depth++;
	w->needs_comma = false;
}

static void end(struct writer *w, const char *bracket)
{
	w->depth--;
	w->needs_comma = false;
	next_line(w);
	put_text(w, bracket);
}

static void put_texts(struct writer *w, const char *key, const struct aw_policy_list *list)
{
	begin(w, key, "[");
	for (size_t i = 0; i < list->count; i++) {
		put_key(w, NULL);
		put_string(w, list->entry[i].text);
		w->pending = &list->entry[i].from;
	}
	end(w, "]");
}

static void put_mounts(struct writer *w, const struct aw_policy_list *mounts)
{
	begin(w, "mounts", "[");
	for (size_t i = 0; i < mounts->count; i++) {
		const struct aw_policy_entry *mount = &mounts->entry[i];

		put_key(w, NULL);
		put_text(w, "{ \"host\": ");
		put_string(w, mount->host);
		put_text(w, ", \"at\": ");
		put_string(w, mount->text);
		put_text(w, mount->is_writable ? ", \"mode\": \"rw\" }" : ", \"mode\": \"ro\" }");
		w->pending = &mount->from;
	}
	end(w, "]");
}

static void put_bits(struct writer *w, const char *key, unsigned mask,
		     const char *(*text)(unsigned index))
{
	bool is_first = true;

	put_key(w, key);
	put_text(w, "[");
	for (unsigned i = 0; text(i) != NULL; i++) {
		if ((mask & 1u << i) == 0)
			continue;
		put_text(w, is_first ? "" : ", ");
		put_string(w, text(i));
		is_first = false;
	}
	put_text(w, "]");
}

static void put_ports(struct writer *w, const char *key, const uint16_t *ports, size_t count)
{
	put_key(w, key);
	put_text(w, "[");
	for (size_t i = 0; i < count; i++)
		put(w, i > 0 ? ", %u" : "%u", ports[i]);
	put_text(w, "]");
}

static bool is_grant(const struct aw_net_rule *rule)
{
	return rule->is_denied == 0;
}

static bool is_denial(const struct aw_net_rule *rule)
{
	return rule->is_denied != 0;
}

static bool is_private(const struct aw_net_rule *rule)
{
	return rule->may_be_private != 0;
}

static void put_rules(struct writer *w, const char *key, const struct aw_policy *policy,
		      bool (*is_wanted)(const struct aw_net_rule *rule))
{
	char text[AW_DOMAIN_TEXT_MAX];

	begin(w, key, "[");
	for (uint32_t i = 0; i < policy->net->rule_count; i++) {
		if (!is_wanted(&policy->net->rules[i]))
			continue;
		aw_net_rule_format(&policy->net->rules[i], text, sizeof(text));
		put_key(w, NULL);
		put_string(w, text);
		if (i < policy->rules.count)
			w->pending = &policy->rules.entry[i].from;
	}
	end(w, "]");
}

static void put_file_system(struct writer *w, const struct aw_policy *policy)
{
	begin(w, "file_system", "{");
	if (policy->read.is_present)
		put_texts(w, "read_paths", &policy->read);
	if (policy->write.is_present)
		put_texts(w, "write_paths", &policy->write);
	put_texts(w, "deny_paths", &policy->deny);
	put_mounts(w, &policy->mounts);
	put_bits(w, "protect", policy->protect, aw_policy_protect_text);
	end(w, "}");
}

static void put_network(struct writer *w, const struct aw_policy *policy)
{
	const struct aw_net *net = policy->net;

	begin(w, "network", "{");
	put_rules(w, "allowed_domains", policy, is_grant);
	put_rules(w, "denied_domains", policy, is_denial);
	put_rules(w, "allow_private", policy, is_private);
	put_ports(w, "allowed_ports", net->ports, net->port_count);
	put_ports(w, "blocked_ports", net->blocked, net->blocked_count);
	put_key(w, "offline");
	put_text(w, policy->has_network ? "false" : "true");
	end(w, "}");
}

static void put_limits(struct writer *w, const struct aw_policy *policy)
{
	begin(w, "code_execution", "{");
	for (size_t i = 0; i < AW_LIMIT_COUNT; i++) {
		uint64_t value = policy->limit[i];

		put_key(w, aw_policy_limit_key((enum aw_policy_limit)i));
		if (i != AW_LIMIT_CPU_MILLI || value % 1000 == 0)
			put(w, "%llu",
			    (unsigned long long)(i == AW_LIMIT_CPU_MILLI ? value / 1000 : value));
		else
			put(w, "%llu.%03llu", (unsigned long long)value / 1000,
			    (unsigned long long)value % 1000);
		if (value != 0)
			w->pending = &policy->limit_from[i];
	}
	end(w, "}");
}

int aw_policy_show(const struct aw_policy *policy, bool with_origins, struct aw_buf *out)
{
	struct writer w = { .out = out, .has_origins = with_origins, .depth = 1 };

	put_text(&w, "{");
	put_key(&w, "version");
	put_text(&w, "1");
	put_key(&w, "extends");
	put_string(&w, policy->preset);
	begin(&w, "capabilities", "{");
	put_file_system(&w, policy);
	put_network(&w, policy);
	put_limits(&w, policy);
	end(&w, "}");
	begin(&w, "env", "{");
	put_texts(&w, "pass", &policy->env);
	end(&w, "}");
	put_bits(&w, "allow_degraded", policy->degraded, aw_policy_degraded_text);
	begin(&w, "audit", "{");
	put_key(&w, "level");
	put_text(&w, "\"session\"");
	end(&w, "}");
	put_key(&w, "runtime");
	put_text(&w, "\"native\"");
	end(&w, "}");
	put_text(&w, "\n");
	return w.status < 0 ? w.status : 0;
}

int aw_policy_seal(struct aw_policy *policy)
{
	autodrop(aw_buf_fini) struct aw_buf text = AW_BUF_INIT(SHOW_MAX);
	int r = aw_policy_show(policy, false, &text);

	if (r < 0)
		return r;
	(void)crypto_hash_sha256(policy->digest, (const unsigned char *)text.data, text.len);
	(void)sodium_bin2hex(policy->digest_hex, sizeof(policy->digest_hex), policy->digest,
			     sizeof(policy->digest));
	return 0;
}
