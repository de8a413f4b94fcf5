/*
 * own - one visible owner for every resource.
 *
 *	autofree char *text = NULL;          freed at the end of the scope
 *	autoclose int fd = -EBADF;           closed at the end of the scope (an empty fd is -EBADF)
 *	autodrop(aw_x_drop) struct aw_x *x = NULL;
 *
 * What leaves the scope is taken: `*ret = AW_TAKE_PTR(text)`, `s->fd = AW_TAKE_FD(fd)`.
 * A destructor takes a struct x **, clears it and accepts NULL and half-built objects.
 */
#pragma once

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

static inline void aw_own_free(void *slot)
{
	void **p = slot;

	free(*p);
	*p = NULL;
}

/* Close @fd if it is one; keeps errno. Always returns -EBADF, for `fd = aw_fd_close(fd)`. */
static inline int aw_fd_close(int fd)
{
	int saved = errno;

	if (fd >= 0)
		(void)close(fd);
	errno = saved;
	return -EBADF;
}

static inline void aw_own_close(int *fd)
{
	*fd = aw_fd_close(*fd);
}

#define autofree __attribute__((cleanup(aw_own_free)))
#define autoclose __attribute__((cleanup(aw_own_close)))
#define autodrop(destructor) __attribute__((cleanup(destructor)))

#define AW_TAKE_PTR(p)                         \
	({                                     \
		__typeof__(p) *slot_ = &(p);   \
		__typeof__(p) taken_ = *slot_; \
		*slot_ = NULL;                 \
		taken_;                        \
	})

#define AW_TAKE_FD(fd)               \
	({                           \
		int *slot_ = &(fd);  \
		int taken_ = *slot_; \
		*slot_ = -EBADF;     \
		taken_;              \
	})

#define AW_ARRAY_LEN(a) (sizeof(a) / sizeof((a)[0]))
