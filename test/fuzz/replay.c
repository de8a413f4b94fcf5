/*
 * replay - run a fuzzer over its corpus without libFuzzer: a plain test in every build.
 *
 *	fuzz-NAME DIRECTORY
 *
 * Each file is run as it is; a small one also cut short at every byte, and with every byte in turn
 * replaced by some that parsers trip over. Prints TAP, one line per file; none at all is a failure.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/fd.h"
#include "base/own.h"
#include "fuzz.h"

#define FILE_MAX (1024 * 1024)
#define SMALL 600

static void run(const char *bytes, size_t len)
{
	/* A copy of exactly this length, so that a sanitizer sees a read beyond its end. */
	uint8_t *copy = malloc(len > 0 ? len : 1);

	if (copy == NULL)
		abort();
	if (len > 0)
		memcpy(copy, bytes, len);
	(void)LLVMFuzzerTestOneInput(copy, len);
	free(copy);
}

static void run_variants(char *bytes, size_t len)
{
	static const char strange[] = { '\0', '\n', '\r', ' ', ':', '0', '\x7f', '\xff' };

	for (size_t i = 0; i < len; i++) {
		char kept = bytes[i];

		run(bytes, i);
		for (size_t k = 0; k < AW_ARRAY_LEN(strange); k++) {
			bytes[i] = strange[k];
			run(bytes, len);
		}
		bytes[i] = kept;
	}
}

static int replay_file(int dir_fd, const char *name)
{
	autofree char *bytes = NULL;
	struct aw_error err = { 0 };
	ssize_t len = aw_read_file(dir_fd, name, FILE_MAX, &bytes, &err);

	if (len < 0) {
		fprintf(stderr, "%s\n", err.message);
		return (int)len;
	}
	run(bytes, (size_t)len);
	if (len <= SMALL)
		run_variants(bytes, (size_t)len);
	return 0;
}

int main(int argc, char **argv)
{
	DIR *dir = argc == 2 ? opendir(argv[1]) : NULL;
	const struct dirent *entry;
	int count = 0, failed = 0;

	if (dir == NULL) {
		fprintf(stderr, "usage: %s DIRECTORY (%s)\n", argv[0], strerror(errno));
		return EXIT_FAILURE;
	}
	while ((entry = readdir(dir)) != NULL) {
		int r;

		if (entry->d_name[0] == '.')
			continue;
		r = replay_file(dirfd(dir), entry->d_name);
		failed += r < 0;
		printf("%sok %d - %s\n", r < 0 ? "not " : "", ++count, entry->d_name);
	}
	(void)closedir(dir);
	printf("1..%d\n", count);
	return count == 0 || failed > 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}
