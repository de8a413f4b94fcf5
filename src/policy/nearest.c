#include <string.h>

#include "policy/keys-internal.h"

#define WORD_MAX 32

static unsigned min3(unsigned a, unsigned b, unsigned c)
{
	unsigned least = a < b ? a : b;

	return least < c ? least : c;
}

/* Optimal string alignment: insertions, deletions, substitutions and swaps of neighbours. */
static unsigned distance(const char *a, size_t a_len, const char *b, size_t b_len)
{
	unsigned row[WORD_MAX + 1][WORD_MAX + 1];

	for (unsigned i = 0; i <= a_len; i++)
		row[i][0] = i;
	for (unsigned j = 0; j <= b_len; j++)
		row[0][j] = j;
	for (size_t i = 1; i <= a_len; i++)
		for (size_t j = 1; j <= b_len; j++) {
			unsigned cost = a[i - 1] != b[j - 1];

			row[i][j] = min3(row[i - 1][j] + 1, row[i][j - 1] + 1,
					 row[i - 1][j - 1] + cost);
			if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
				row[i][j] = min3(row[i][j], row[i][j], row[i - 2][j - 2] + 1);
		}
	return row[a_len][b_len];
}

const char *aw_nearest(const char *key, const char *const *names, size_t count)
{
	const char *best = NULL;
	size_t len = strlen(key);
	unsigned least =
		len < 5 ? 2 : 3; /* exclusive: one slip in a short word, two in a long one */

	for (size_t i = 0; i < count && len <= WORD_MAX; i++) {
		size_t name_len = strlen(names[i]);
		unsigned d;

		if (name_len > WORD_MAX)
			continue;
		d = distance(key, len, names[i], name_len);
		if (d < least) {
			least = d;
			best = names[i];
		}
	}
	return best;
}
