/*
 * error - how a failure travels.
 *
 * A function that can fail returns -errno (or >= 0) and tells the story into a flat struct that the
 * caller keeps on its stack. Nothing is allocated and nothing must be freed. The struct is smaller
 * than PIPE_BUF, so that a child that fails before exec can write it to a pipe in one piece.
 *
 *	int aw_thing_do(..., struct aw_error *err)
 *	{
 *		fd = open(...);
 *		if (fd < 0)
 *			return aw_fail(err, errno, "open '%s'", name);   // a call failed: adds errno's words
 *		if (size > MAX)
 *			return aw_refuse(err, EFBIG, "'%s' is larger than %d bytes", name, MAX);
 *		r = aw_other_do(..., err);
 *		if (r < 0)
 *			return aw_while(err, "do the thing");             // adds a step in front
 *	}
 *
 * Codes beside errno's own: EBADMSG malformed input, EPROTO a peer broke protocol, EXDEV would leave
 * the place it must stay in, EACCES the policy says no, ENOTSUP the host cannot enforce it.
 */
#pragma once

#define AW_ERROR_MESSAGE_MAX 508

struct aw_error {
	int code;                           /* errno value, positive; 0 = nothing happened */
	char message[AW_ERROR_MESSAGE_MAX]; /* NUL-terminated, cut with "..." when too long */
};

/* A call failed with errno value @code: message plus strerror. Returns -@code. */
int aw_fail(struct aw_error *err, int code, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/* We refuse: the message is all ours. Returns -@code. */
int aw_refuse(struct aw_error *err, int code, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/* Put "@format: " in front of the story that is there. Returns -err->code. */
int aw_while(struct aw_error *err, const char *format, ...) __attribute__((format(printf, 2, 3)));

/*
 * The compiler and the analyzers do not see into error.c: without this they would suspect every
 * caller of going on, after a failure, with a result that was never written.
 */
static inline int aw_error_is_negative(int r)
{
	if (r >= 0)
		__builtin_unreachable();
	return r;
}

#define aw_fail(...) aw_error_is_negative((aw_fail)(__VA_ARGS__))
#define aw_refuse(...) aw_error_is_negative((aw_refuse)(__VA_ARGS__))
#define aw_while(...) aw_error_is_negative((aw_while)(__VA_ARGS__))
