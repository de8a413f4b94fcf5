#include "monitor/notice.h"

#include <errno.h>
#include <string.h>

#define RULES_SHOWN 200

static int add_hosts(const struct aw_net *net, struct aw_buf *out)
{
	int r = 0;

	for (uint32_t i = 0; r == 0 && i < net->rule_count && i < RULES_SHOWN; i++) {
		char text[AW_NET_NAME_MAX + 16];

		if (net->rules[i].is_denied)
			continue;
		aw_net_rule_format(&net->rules[i], text, sizeof(text));
		r = aw_buf_printf(out, "  %s\n", text);
	}
	return r;
}

static int add_writable(const struct aw_prepared *p, struct aw_buf *out)
{
	bool is_hidden = p->policy->read.is_present || p->policy->write.is_present;
	int r = is_hidden ? 0 : aw_buf_printf(out, "  %s (the project)\n", p->workspace_at);

	for (size_t i = 0; r == 0 && i < p->grants.bind_count; i++)
		if (p->grants.binds[i].is_writable)
			r = aw_buf_printf(out, "  %s\n", p->grants.binds[i].at);
	return r < 0 ? r : aw_buf_printf(out, "  %s, /tmp\n", p->home_at);
}

static int add_read_only(const struct aw_prepared *p, struct aw_buf *out)
{
	int r = 0;

	if (p->grants.protects.count > 0)
		r = aw_buf_append_str(out,
				      "\nRead-only in the project, since they run on the person's "
				      "machine later:\n");
	for (size_t i = 0; r == 0 && i < p->grants.protects.count; i++)
		r = aw_buf_printf(out, "  %s\n", p->grants.protects.text[i]);
	return r;
}

int aw_notice_write(const struct aw_prepared *prepared, struct aw_buf *out, struct aw_error *err)
{
	int r = aw_buf_append_str(
		out, "This is a sandbox (AI Warden). Its limits are the kernel's: they "
		     "cannot be worked around, only changed\nby the person who started it. "
		     "Other sandboxes cannot be started inside.\n\nWritable:\n");

	if (r == 0)
		r = add_writable(prepared, out);
	if (r == 0)
		r = add_read_only(prepared, out);
	if (r == 0 && !prepared->policy->has_network)
		r = aw_buf_append_str(out, "\nThere is no network in this session.\n");
	if (r == 0 && prepared->policy->has_network) {
		r = aw_buf_append_str(
			out, "\nThese hosts can be reached (by the proxy of the environment, or "
			     "directly), all others are refused:\n");
		if (r == 0)
			r = add_hosts(prepared->policy->net, out);
		if (r == 0)
			r = aw_buf_append_str(
				out, "To ask for another, tell the person to run on the host:\n"
				     "  warden allowlist add HOST\n");
	}
	return r < 0 ? aw_fail(err, -r, "write the notice") : 0;
}
