/*
 * This program opens no file, and the library that would is answered at link time (ld --wrap):
 *
 * c-ares reads /etc/resolv.conf, /etc/hosts, /etc/host.conf and /etc/services unless told everything,
 * and seeds its query ids from /dev/urandom or else from rand(). Gate lives in an empty root, so it
 * would fall back to rand(), whose sequence is known: a forged answer would need no guess. The
 * kernel's random bytes do instead.
 */
#include <errno.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/random.h>

FILE *__wrap_fopen(const char *path, const char *mode);
struct servent *__wrap_getservbyname(const char *name, const char *protocol);
int __wrap_getservbyport_r(int port, const char *protocol, struct servent *entry, char *buf,
			   size_t len, struct servent **ret);
int __wrap_rand(void);

FILE *__wrap_fopen(const char *path, const char *mode)
{
	(void)path;
	(void)mode;
	errno = ENOENT;
	return NULL;
}

struct servent *__wrap_getservbyname(const char *name, const char *protocol)
{
	(void)name;
	(void)protocol;
	return NULL;
}

int __wrap_getservbyport_r(int port, const char *protocol, struct servent *entry, char *buf,
			   size_t len, struct servent **ret)
{
	(void)port;
	(void)protocol;
	(void)entry;
	(void)buf;
	(void)len;
	*ret = NULL;
	return ENOENT;
}

int __wrap_rand(void)
{
	unsigned value;

	if (getrandom(&value, sizeof(value), 0) != sizeof(value))
		abort();
	return (int)(value & RAND_MAX);
}
