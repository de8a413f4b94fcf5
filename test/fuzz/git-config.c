/*
 * A git configuration from anywhere. Names have a dot, their ends are in lower case, nothing is longer
 * than the text; and what was read, written again with every character escaped that can be, is read as
 * the same.
 */
#include <stdio.h>
#include <stdlib.h>

#include "cell/git-config.h"
#include "fuzz.h"

struct writer {
	char *text;
	size_t len;
};

static void put(struct writer *w, const char *text)
{
	memcpy(w->text + w->len, text, strlen(text));
	w->len += strlen(text);
}

/* In quotes: "\"" and "\\" have a backslash, a line feed and its like have letters. */
static void put_value(struct writer *w, const char *value)
{
	static const char plain[] = "\"\\\n\t\b", letters[] = "\"\\ntb";

	put(w, "\"");
	for (; *value != '\0'; value++) {
		const char *special = strchr(plain, *value);

		if (special != NULL)
			w->text[w->len++] = '\\';
		w->text[w->len++] = special != NULL ? letters[special - plain] : *value;
	}
	put(w, "\"\n");
}

/* "[section \"sub\"]\nkey"; a name from before any section begins with the dot. */
static void put_name(struct writer *w, const char *name)
{
	const char *first = strchr(name, '.'), *last = strrchr(name, '.');

	assert(first != NULL);
	put(w, "[");
	for (; name < first; name++)
		w->text[w->len++] = *name;
	if (last > first) {
		put(w, " \"");
		for (const char *c = first + 1; c < last; c++) {
			w->text[w->len++] = '\\';
			w->text[w->len++] = *c;
		}
		put(w, "\"");
	}
	put(w, "]\n");
	put(w, last + 1);
}

static void hold_setting(const struct aw_git_setting *s, size_t size)
{
	const char *last = strrchr(s->name, '.');

	assert(last != NULL && strlen(s->name) <= size + 1);
	for (const char *c = last + 1; *c != '\0'; c++)
		assert(*c < 'A' || *c > 'Z');
	assert(s->value == NULL || strlen(s->value) <= size);
}

static size_t room_for(const struct aw_git_config *config)
{
	size_t room = 1;

	for (size_t i = 0; i < config->count; i++) {
		const struct aw_git_setting *s = &config->setting[i];

		room += 2 * strlen(s->name) + 16;
		room += s->value != NULL ? 2 * strlen(s->value) + 8 : 0;
	}
	return room;
}

static void hold_again(const struct aw_git_config *config)
{
	struct writer w = { malloc(room_for(config)), 0 };
	struct aw_git_config again = { 0 };
	struct aw_error err;

	assert(w.text != NULL);
	for (size_t i = 0; i < config->count; i++) {
		put_name(&w, config->setting[i].name);
		put(&w, config->setting[i].value != NULL ? " = " : "\n");
		if (config->setting[i].value != NULL)
			put_value(&w, config->setting[i].value);
	}
	assert(aw_git_config_parse((struct aw_str){ w.text, w.len }, &again, &err) == 0);
	assert(again.count == config->count);
	for (size_t i = 0; i < config->count; i++) {
		const struct aw_git_setting *a = &config->setting[i], *b = &again.setting[i];

		assert(strcmp(a->name, b->name) == 0);
		assert((a->value == NULL) == (b->value == NULL));
		assert(a->value == NULL || strcmp(a->value, b->value) == 0);
	}
	aw_git_config_fini(&again);
	free(w.text);
}

/* A carriage return in a sub-section cannot be written so that it never stands before a line feed. */
static bool can_be_written(const struct aw_git_config *config)
{
	for (size_t i = 0; i < config->count; i++)
		if (strpbrk(config->setting[i].name, "\r\n") != NULL)
			return false;
	return true;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct aw_git_config config = { 0 };
	struct aw_error err;

	if (aw_git_config_parse(fuzz_str(data, size), &config, &err) == 0) {
		for (size_t i = 0; i < config.count; i++)
			hold_setting(&config.setting[i], size);
		if (can_be_written(&config))
			hold_again(&config);
	}
	aw_git_config_fini(&config);
	return 0;
}
