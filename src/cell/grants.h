/*
 * grants - what is added to a cell's view beyond the system, collected from several deciders.
 *
 * The project's git layout, its protected files, the home's toolchains, the agent's program and the
 * policy's own paths each add to one struct aw_grants; view.c turns it into operations. Texts are
 * owned by the collection. A path that is added twice counts once, and writable wins.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"
#include "cell/view.h"

#define AW_GRANTS_MAX 512

struct aw_texts {
	char **text;
	size_t count;
};

struct aw_grants {
	struct aw_view_grant *binds;
	size_t bind_count;
	struct aw_texts pins, protects, masks;
	struct aw_texts notes;        /* for the person, at start */
	struct aw_texts path;         /* directories to put on PATH, first come first */
	struct aw_texts repositories; /* git directories, at their paths in the cell */
	struct aw_texts linked;       /* held files with another name, at their paths in the cell */
	bool has_unseen_repositories; /* the project was not looked through to its end */
};

/* All return 0, -ENOMEM, or -E2BIG beyond AW_GRANTS_MAX. */
int aw_grants_bind(struct aw_grants *g, const char *source, const char *at, bool is_writable,
		   struct aw_error *err);
int aw_grants_add(struct aw_texts *texts, const char *text, struct aw_error *err);
int aw_grants_note(struct aw_grants *g, struct aw_error *err, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
bool aw_grants_has(const struct aw_texts *texts, const char *text);
void aw_grants_fini(struct aw_grants *g);
void aw_texts_fini(struct aw_texts *texts);
