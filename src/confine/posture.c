#include "confine/posture.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>

#include "base/fd.h"
#include "base/own.h"

#define STATUS_SIZE_MAX (64 * 1024)
#define MOUNTS_SIZE_MAX (4 * 1024 * 1024)
#define DISCARD_PORT 9

static const char *const names[AW_POSTURE_COUNT] = {
	[AW_POSTURE_IDENTITY] = "identity",
	[AW_POSTURE_CAPABILITIES] = "capabilities",
	[AW_POSTURE_NO_NEW_PRIVS] = "no-new-privs",
	[AW_POSTURE_SECCOMP] = "seccomp",
	[AW_POSTURE_MOUNTS] = "mounts",
	[AW_POSTURE_ROOT] = "root",
	[AW_POSTURE_DESCRIPTORS] = "descriptors",
	[AW_POSTURE_ROUTE] = "route",
};

struct measure {
	const struct aw_posture_expected *expected;
	unsigned held;
	struct aw_error *err; /* the caller's: the first story */
	int result;
};

const char *aw_posture_name(enum aw_posture_check check)
{
	return names[check];
}

/* Book the outcome of one check; @story goes to the caller if it is the first that did not hold. */
static void book(struct measure *m, enum aw_posture_check check, int r, struct aw_error *story)
{
	if (r >= 0) {
		m->held |= 1u << check;
		return;
	}
	if (m->result < 0)
		return;
	*m->err = *story;
	m->result = aw_while(m->err, "posture check '%s'", names[check]);
}

static void measure_status(struct measure *m)
{
	struct aw_posture_status status = { 0 };
	struct aw_error story = { 0 };
	autofree char *text = NULL;
	ssize_t len = aw_read_file(AT_FDCWD, "/proc/self/status", STATUS_SIZE_MAX, &text, &story);
	int r = len < 0 ? (int)len
			: aw_posture_parse_status((struct aw_str){ text, (size_t)len }, &status,
						  &story);

	if (r < 0) {
		book(m, AW_POSTURE_IDENTITY, r, &story);
		return;
	}
	book(m, AW_POSTURE_IDENTITY, aw_posture_judge_identity(&status, m->expected, &story),
	     &story);
	book(m, AW_POSTURE_CAPABILITIES, aw_posture_judge_capabilities(&status, &story), &story);
	r = status.no_new_privs == 1 ? 0 : aw_refuse(&story, EACCES, "it is not set");
	book(m, AW_POSTURE_NO_NEW_PRIVS, r, &story);
	r = status.seccomp == 2 ? 0 : aw_refuse(&story, EACCES, "no filter is on");
	book(m, AW_POSTURE_SECCOMP, r, &story);
}

static void measure_mounts(struct measure *m)
{
	struct aw_error story = { 0 };
	autofree char *text = NULL;
	ssize_t len =
		aw_read_file(AT_FDCWD, "/proc/self/mountinfo", MOUNTS_SIZE_MAX, &text, &story);
	struct aw_str mounts = { text, len < 0 ? 0 : (size_t)len };

	if (len < 0) {
		book(m, AW_POSTURE_MOUNTS, (int)len, &story);
		return;
	}
	book(m, AW_POSTURE_MOUNTS, aw_posture_judge_mounts(mounts, m->expected, &story), &story);
	book(m, AW_POSTURE_ROOT, aw_posture_judge_root(mounts, &story), &story);
}

static bool is_expected(const struct aw_posture_expected *expected, int fd)
{
	for (size_t i = 0; i < expected->descriptor_count; i++)
		if (expected->descriptors[i] == fd)
			return true;
	return false;
}

static void drop_dir(DIR **dir)
{
	if (*dir != NULL)
		(void)closedir(*dir);
	*dir = NULL;
}

static int check_descriptors(const struct aw_posture_expected *expected, struct aw_error *err)
{
	autodrop(drop_dir) DIR *dir = opendir("/proc/self/fd");
	const struct dirent *entry;

	if (dir == NULL)
		return aw_fail(err, errno, "list our descriptors");
	while (errno = 0, (entry = readdir(dir)) != NULL) {
		uint64_t fd;

		if (aw_str_to_u64(aw_str_from(entry->d_name), INT32_MAX, &fd) < 0)
			continue; /* "." and ".." */
		if ((int)fd != dirfd(dir) && !is_expected(expected, (int)fd))
			return aw_refuse(err, EACCES, "descriptor %d is open", (int)fd);
	}
	return errno == 0 ? 0 : aw_fail(err, errno, "list our descriptors");
}

/* For a datagram socket connect() only looks up the route; not a byte is sent. */
static int connect_errno(const struct sockaddr *address, socklen_t len)
{
	autoclose int fd = socket(address->sa_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	return fd < 0 || connect(fd, address, len) < 0 ? errno : 0;
}

static int check_route(struct aw_error *err)
{
	/* TEST-NET-1 (RFC 5737) and the documentation prefix (RFC 3849): nobody's addresses. */
	struct sockaddr_in v4 = { .sin_family = AF_INET, .sin_port = htons(DISCARD_PORT) };
	struct sockaddr_in6 v6 = { .sin6_family = AF_INET6, .sin6_port = htons(DISCARD_PORT) };
	int code;

	(void)inet_pton(AF_INET, "192.0.2.1", &v4.sin_addr);
	(void)inet_pton(AF_INET6, "2001:db8::1", &v6.sin6_addr);
	code = connect_errno((const struct sockaddr *)&v4, sizeof(v4));
	if (!aw_posture_is_unreachable(code))
		return aw_refuse(err, EACCES, "there is an IPv4 route to the outside (%s)",
				 code == 0 ? "connected" : strerror(code));
	code = connect_errno((const struct sockaddr *)&v6, sizeof(v6));
	if (!aw_posture_is_unreachable(code))
		return aw_refuse(err, EACCES, "there is an IPv6 route to the outside (%s)",
				 code == 0 ? "connected" : strerror(code));
	return 0;
}

int aw_posture_measure(const struct aw_posture_expected *expected, unsigned *ret_held,
		       struct aw_error *err)
{
	struct measure m = { .expected = expected, .err = err };
	struct aw_error story = { 0 };

	measure_status(&m);
	measure_mounts(&m);
	book(&m, AW_POSTURE_DESCRIPTORS, check_descriptors(expected, &story), &story);
	book(&m, AW_POSTURE_ROUTE, check_route(&story), &story);
	*ret_held = m.held;
	return m.result;
}
