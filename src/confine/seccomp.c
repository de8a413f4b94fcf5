#include "confine/seccomp.h"

#include <errno.h>
#include <linux/filter.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/uapi.h"

static int install(const void *code, size_t size, unsigned long flags, struct aw_error *err)
{
	/* The kernel copies the instructions: @code need not be aligned and is not written. */
	struct sock_fprog program = { .filter = (struct sock_filter *)code };
	long r;

	if (size == 0 || size % sizeof(struct sock_filter) != 0 ||
	    size / sizeof(struct sock_filter) > BPF_MAXINSNS)
		return aw_refuse(err, EBADMSG, "a filter of %zu bytes is not a program", size);
	program.len = (unsigned short)(size / sizeof(struct sock_filter));
	r = syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, flags, &program);
	return r < 0 ? aw_fail(err, errno, "apply the system call filter") : (int)r;
}

int aw_seccomp_apply(const void *code, size_t size, struct aw_error *err)
{
	return install(code, size, 0, err);
}

int aw_seccomp_listen(const void *code, size_t size, bool *ret_killable, struct aw_error *err)
{
	const unsigned long flags = SECCOMP_FILTER_FLAG_NEW_LISTENER;
	int fd = install(code, size, flags | SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV, err);
	bool killable = fd >= 0;

	if (fd == -EINVAL)
		fd = install(code, size, flags, err);
	if (fd >= 0)
		*ret_killable = killable;
	return fd;
}
