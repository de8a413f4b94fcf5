#include "cell/grants.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/own.h"
#include "base/str.h"

bool aw_grants_has(const struct aw_texts *texts, const char *text)
{
	for (size_t i = 0; i < texts->count; i++)
		if (strcmp(texts->text[i], text) == 0)
			return true;
	return false;
}

int aw_grants_add(struct aw_texts *texts, const char *text, struct aw_error *err)
{
	char **larger;

	if (aw_grants_has(texts, text))
		return 0;
	if (texts->count == AW_GRANTS_MAX)
		return aw_refuse(err, E2BIG, "more than %d paths to hold: '%s'", AW_GRANTS_MAX,
				 text);
	larger = reallocarray(texts->text, texts->count + 1, sizeof(*larger));
	if (larger == NULL)
		return aw_fail(err, ENOMEM, "remember '%s'", text);
	texts->text = larger;
	texts->text[texts->count] = strdup(text);
	if (texts->text[texts->count] == NULL)
		return aw_fail(err, ENOMEM, "remember '%s'", text);
	texts->count++;
	return 0;
}

static struct aw_view_grant *find_bind(struct aw_grants *g, const char *at)
{
	for (size_t i = 0; i < g->bind_count; i++)
		if (strcmp(g->binds[i].at, at) == 0)
			return &g->binds[i];
	return NULL;
}

int aw_grants_bind(struct aw_grants *g, const char *source, const char *at, bool is_writable,
		   struct aw_error *err)
{
	struct aw_view_grant *known = find_bind(g, at), *larger;
	struct stat st = { 0 };
	autofree char *source_copy = strdup(source), *at_copy = strdup(at);

	if (known != NULL) {
		known->is_writable = known->is_writable || is_writable;
		return 0;
	}
	if (stat(source, &st) < 0)
		st = (struct stat){ 0 };
	if (g->bind_count == AW_GRANTS_MAX)
		return aw_refuse(err, E2BIG, "more than %d mounts: '%s'", AW_GRANTS_MAX, at);
	larger = reallocarray(g->binds, g->bind_count + 1, sizeof(*larger));
	if (larger != NULL)
		g->binds = larger;
	if (larger == NULL || source_copy == NULL || at_copy == NULL)
		return aw_fail(err, ENOMEM, "remember '%s'", at);
	g->binds[g->bind_count++] = (struct aw_view_grant){
		.source = AW_TAKE_PTR(source_copy),
		.at = AW_TAKE_PTR(at_copy),
		.is_writable = is_writable,
		.dev = st.st_dev,
		.ino = st.st_ino,
	};
	return 0;
}

int aw_grants_note(struct aw_grants *g, struct aw_error *err, const char *format, ...)
{
	autofree char *text = NULL;
	va_list args;
	int n;

	va_start(args, format);
	n = vasprintf(&text, format, args);
	va_end(args);
	if (n < 0) {
		text = NULL;
		return aw_fail(err, ENOMEM, "note");
	}
	return aw_grants_add(&g->notes, text, err);
}

void aw_texts_fini(struct aw_texts *texts)
{
	for (size_t i = 0; i < texts->count; i++)
		free(texts->text[i]);
	free(texts->text);
	*texts = (struct aw_texts){ NULL, 0 };
}

void aw_grants_fini(struct aw_grants *g)
{
	for (size_t i = 0; i < g->bind_count; i++) {
		free((char *)(uintptr_t)g->binds[i].source);
		free((char *)(uintptr_t)g->binds[i].at);
	}
	free(g->binds);
	g->binds = NULL;
	g->bind_count = 0;
	aw_texts_fini(&g->pins);
	aw_texts_fini(&g->protects);
	aw_texts_fini(&g->masks);
	aw_texts_fini(&g->notes);
	aw_texts_fini(&g->path);
	aw_texts_fini(&g->repositories);
	aw_texts_fini(&g->linked);
}
