#include "monitor/names.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <ifaddrs.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>

#include "base/fd.h"
#include "base/own.h"

#define RESOLV_MAX 65536
#define HOSTS_MAX (1024 * 1024)
#define HOSTS_FILE "/etc/hosts"

bool aw_names_parse_address(struct aw_str text, struct aw_ipc_addr *ret)
{
	static const int families[] = { AF_INET, AF_INET6 };
	char copy[INET6_ADDRSTRLEN];

	if (text.len == 0 || text.len >= sizeof(copy) || memchr(text.ptr, '\0', text.len) != NULL)
		return false;
	memcpy(copy, text.ptr, text.len);
	copy[text.len] = '\0';
	*ret = (struct aw_ipc_addr){ 0 };
	for (size_t i = 0; i < AW_ARRAY_LEN(families); i++) {
		if (inet_pton(families[i], copy, ret->bytes) != 1)
			continue;
		ret->family = (uint8_t)families[i];
		return true;
	}
	return false;
}

/* The next word of a line; a comment sign ends the line. */
static bool next_word(struct aw_str *line, struct aw_str *ret)
{
	static const char blanks[] = " \t\r";
	size_t n = 0;

	while (line->len > 0 && memchr(blanks, *line->ptr, 3) != NULL) {
		line->ptr++;
		line->len--;
	}
	while (n < line->len && memchr(" \t\r#;", line->ptr[n], 5) == NULL)
		n++;
	*ret = (struct aw_str){ line->ptr, n };
	line->ptr += n;
	line->len -= n;
	return n > 0;
}

void aw_names_parse_resolv(struct aw_str text, struct aw_ipc_resolvers *ret)
{
	struct aw_str line, word;

	*ret = (struct aw_ipc_resolvers){ 0 };
	while (aw_str_next(&text, '\n', &line)) {
		if (ret->count == AW_IPC_SERVERS_MAX)
			break;
		if (!next_word(&line, &word) || !aw_str_is(word, "nameserver") ||
		    !next_word(&line, &word))
			continue;
		if (!aw_names_parse_address(word, &ret->server[ret->count]))
			continue;
		ret->server[ret->count++].port = 53;
	}
}

static bool is_granted(const struct aw_net *net, struct aw_str raw, char *name)
{
	struct aw_net_verdict verdict;
	int len = aw_net_normalise(raw, name);

	if (len < 0)
		return false;
	aw_net_decide(net, (struct aw_str){ name, (size_t)len }, 0, &verdict);
	return verdict.reason == AW_NET_GRANTED;
}

uint32_t aw_names_parse_hosts(struct aw_str text, const struct aw_net *net, struct aw_ipc_host *ret)
{
	struct aw_str line, word;
	uint32_t count = 0;

	while (aw_str_next(&text, '\n', &line)) {
		struct aw_ipc_addr addr;

		if (!next_word(&line, &word) || !aw_names_parse_address(word, &addr))
			continue;
		while (count < AW_IPC_HOSTS_MAX && next_word(&line, &word)) {
			if (!is_granted(net, word, ret[count].name))
				continue;
			ret[count++].addr = addr;
		}
	}
	return count;
}

void aw_names_read_resolv(struct aw_ipc_resolvers *ret)
{
	autofree char *text = NULL;
	struct aw_error missing;
	ssize_t n = aw_read_file(AT_FDCWD, AW_NAMES_RESOLV_CONF, RESOLV_MAX, &text, &missing);

	aw_names_parse_resolv((struct aw_str){ text, n < 0 ? 0 : (size_t)n }, ret);
}

static bool copy_address(const struct sockaddr *from, struct aw_ipc_addr *ret)
{
	*ret = (struct aw_ipc_addr){ 0 };
	if (from == NULL)
		return false;
	if (from->sa_family == AF_INET) {
		struct sockaddr_in in;

		memcpy(&in, from, sizeof(in));
		memcpy(ret->bytes, &in.sin_addr, sizeof(in.sin_addr));
	} else if (from->sa_family == AF_INET6) {
		struct sockaddr_in6 in6;

		memcpy(&in6, from, sizeof(in6));
		memcpy(ret->bytes, &in6.sin6_addr, sizeof(in6.sin6_addr));
	} else {
		return false;
	}
	ret->family = (uint8_t)from->sa_family;
	return true;
}

static int collect_own(struct aw_ipc_gate_setup *ret, struct aw_error *err)
{
	struct ifaddrs *list;

	if (getifaddrs(&list) < 0)
		return aw_fail(err, errno, "list the host's addresses");
	for (struct ifaddrs *one = list; one != NULL; one = one->ifa_next) {
		if (ret->own_count == AW_ARRAY_LEN(ret->own))
			break;
		if (copy_address(one->ifa_addr, &ret->own[ret->own_count]))
			ret->own_count++;
	}
	freeifaddrs(list);
	return 0;
}

int aw_names_collect(const struct aw_net *net, struct aw_ipc_gate_setup *ret, struct aw_error *err)
{
	autofree char *hosts = NULL;
	struct aw_error missing;
	ssize_t n = aw_read_file(AT_FDCWD, HOSTS_FILE, HOSTS_MAX, &hosts, &missing);

	aw_names_read_resolv(&ret->resolvers);
	ret->host_count = aw_names_parse_hosts((struct aw_str){ hosts, n < 0 ? 0 : (size_t)n }, net,
					       ret->host);
	return collect_own(ret, err);
}
