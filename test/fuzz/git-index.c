/*
 * A git index from anywhere: paths are made of its bytes and no longer than a path may be, and a header
 * that promises entries which are not there is refused.
 */
#include <limits.h>

#include "cell/git-index.h"
#include "fuzz.h"

static int parse(struct aw_str bytes, struct aw_texts *ret)
{
	struct aw_error err;
	int r = aw_git_index_parse(bytes, ret, &err);

	assert(r == 0 || r == -EBADMSG || r == -E2BIG);
	return r;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct aw_str bytes = fuzz_str(data, size);
	struct aw_texts links = { 0 }, cut = { 0 };
	int r = parse(bytes, &links);

	for (size_t i = 0; i < links.count; i++) {
		assert(strlen(links.text[i]) < PATH_MAX);
		/* What is compressed may be put together of pieces: then each of its bytes is there. */
		for (const char *c = links.text[i]; *c != '\0'; c++)
			assert(memchr(data, *c, size) != NULL);
	}
	if (r == 0) {
		uint8_t header[12];

		memcpy(header, data, 12);
		header[8] = 0x7f;
		assert(parse((struct aw_str){ (const char *)header, 12 }, &cut) == -EBADMSG);
	}
	aw_texts_fini(&links);
	aw_texts_fini(&cut);
	return 0;
}
