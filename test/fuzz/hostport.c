/* "host" and "host:port": what is accepted is written back and read again; libc must agree on numbers. */
#include "wire/hostport.h"

#include <arpa/inet.h>
#include <stdio.h>

#include "fuzz.h"

#define TEXT_MAX 300

static void hold_host(struct aw_str text, const struct aw_host *host)
{
	char c_text[TEXT_MAX];
	struct in_addr address;

	assert(fuzz_is_inside(host->text, text));
	assert(host->text.len > 0 && host->text.len <= AW_HOST_NAME_MAX + 1);
	assert(memchr(host->text.ptr, '\0', host->text.len) == NULL);
	assert(aw_host_is_literal(host) == (host->kind != AW_HOST_NAME));
	memcpy(c_text, host->text.ptr, host->text.len);
	c_text[host->text.len] = '\0';
	/* The most lenient reader there is: what it takes for an address is never a name to us. */
	if (inet_aton(c_text, &address) != 0)
		assert(host->kind == AW_HOST_IPV4 || host->kind == AW_HOST_ODD_NUMBER);
	if (host->kind == AW_HOST_IPV4)
		assert(inet_aton(c_text, &address) != 0 &&
		       memcmp(&address, host->address, sizeof(address)) == 0);
	if (host->kind != AW_HOST_IPV6)
		assert(aw_host_name_check(host->text) == 0);
}

static void hold_peer(struct aw_str text, const struct aw_hostport *peer)
{
	bool is_v6 = peer->host.kind == AW_HOST_IPV6;
	struct aw_hostport again;
	char back[TEXT_MAX];
	int n;

	assert(peer->port != 0);
	hold_host(text, &peer->host);
	n = aw_str_format(back, sizeof(back), "%s%.*s%s:%u", is_v6 ? "[" : "",
			  (int)peer->host.text.len, peer->host.text.ptr, is_v6 ? "]" : "",
			  peer->port);
	assert(n > 0);
	assert(aw_hostport_parse((struct aw_str){ back, (size_t)n }, 0, &again) == 0);
	assert(again.port == peer->port && again.host.kind == peer->host.kind);
	assert(aw_str_is_equal(again.host.text, peer->host.text));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct aw_str text = fuzz_str(data, size);
	struct aw_hostport peer;
	struct aw_host host;

	if (aw_host_parse(text, &host) == 0) {
		hold_host(text, &host);
		assert(aw_hostport_parse(text, 80, &peer) == 0 && peer.port == 80);
		assert(aw_hostport_parse(text, 0, &peer) == -EBADMSG);
	}
	if (aw_hostport_parse(text, 80, &peer) == 0)
		hold_peer(text, &peer);
	return 0;
}
