#include "cli/login.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <termios.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/own.h"

static int read_all(int fd, struct aw_login_key *key, bool is_line, struct aw_error *err)
{
	ssize_t n = 1;

	while (n > 0 && key->len < sizeof(key->text)) {
		n = read(fd, key->text + key->len, sizeof(key->text) - key->len);
		if (n < 0 && errno == EINTR)
			n = 1;
		else if (n > 0)
			key->len += (size_t)n;
		if (is_line && key->len > 0 && key->text[key->len - 1] == '\n')
			break;
	}
	return n < 0 ? aw_fail(err, errno, "read the key") : 0;
}

static int read_typed(const char *env_name, struct aw_login_key *key, struct aw_error *err)
{
	struct termios saved, silent;
	int r;

	if (tcgetattr(0, &saved) < 0)
		return aw_fail(err, errno, "read the key");
	silent = saved;
	silent.c_lflag &= ~(tcflag_t)ECHO;
	(void)fprintf(stderr, "key (%s), not shown: ", env_name);
	(void)tcsetattr(0, TCSAFLUSH, &silent);
	r = read_all(0, key, true, err);
	(void)tcsetattr(0, TCSAFLUSH, &saved);
	(void)fputc('\n', stderr);
	return r;
}

static bool is_space(char c)
{
	return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

static int check(struct aw_login_key *key, const char *env_name, struct aw_error *err)
{
	while (key->len > 0 && is_space(key->text[key->len - 1]))
		key->len--;
	if (key->len == 0)
		return aw_refuse(err, ENODATA, "no key: give it on stdin, or set %s", env_name);
	if (key->len > AW_LOGIN_KEY_MAX)
		return aw_refuse(err, EBADMSG, "a key is at most %d bytes", AW_LOGIN_KEY_MAX);
	for (size_t i = 0; i < key->len; i++)
		if (key->text[i] <= ' ' || key->text[i] > '~')
			return aw_refuse(err, EBADMSG, "a key is one word of printable characters");
	return 0;
}

int aw_login_read_key(const char *from_env, const char *env_name, struct aw_login_key *ret,
		      struct aw_error *err)
{
	bool is_typed = isatty(0) == 1;
	int r = is_typed ? 0 : read_all(0, ret, false, err);

	if (r == 0 && ret->len == 0 && from_env != NULL && *from_env != '\0') {
		ret->len = strnlen(from_env, sizeof(ret->text));
		memcpy(ret->text, from_env, ret->len);
	} else if (r == 0 && is_typed) {
		r = read_typed(env_name, ret, err);
	}
	return r < 0 ? r : check(ret, env_name, err);
}

int aw_login_put_key(const struct aw_login_key *key, struct aw_error *err)
{
	autoclose int in = -EBADF, out = -EBADF;
	int ends[2];

	if (pipe2(ends, O_CLOEXEC) < 0)
		return aw_fail(err, errno, "hand the key over");
	in = ends[0];
	out = ends[1];
	if (aw_write_all(out, key->text, key->len) < 0 || aw_write_all(out, "\n", 1) < 0 ||
	    dup2(in, 0) < 0)
		return aw_fail(err, errno, "hand the key over");
	return 0;
}

int aw_login_parse(char *const *args, struct aw_login_line *ret, struct aw_error *err)
{
	*ret = (struct aw_login_line){ 0 };
	for (; *args != NULL; args++) {
		if (strcmp(*args, "--import-login") == 0)
			ret->is_import = true;
		else if (strcmp(*args, "--with-api-key") == 0)
			ret->is_by_key = true;
		else if (strcmp(*args, "--yes") == 0 || strcmp(*args, "-y") == 0)
			ret->is_agreed = true;
		else if ((*args)[0] == '-' || ret->agent != NULL)
			return aw_refuse(err, EINVAL, "'%s' is not understood", *args);
		else
			ret->agent = *args;
	}
	if (ret->agent == NULL)
		return aw_refuse(err, EINVAL, "which agent?");
	if (ret->is_import && ret->is_by_key)
		return aw_refuse(err, EINVAL, "--import-login or --with-api-key: one of them");
	return 0;
}
