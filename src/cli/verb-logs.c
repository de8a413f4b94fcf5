/* logs: the journal as a person reads it. audit verify: its chain. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/own.h"
#include "cli/cli.h"
#include "store/reader.h"
#include "store/verify.h"

struct choice {
	const char *prefix[3]; /* of kinds, NULL-terminated; none: every kind */
	bool is_following, wants_json;
	const char *operand;
};

static bool is_chosen(const struct choice *choice, struct aw_str kind)
{
	if (choice->prefix[0] == NULL)
		return true;
	for (size_t i = 0; choice->prefix[i] != NULL; i++)
		if (aw_str_starts(kind, choice->prefix[i]))
			return true;
	return false;
}

/* Everything in a record is safe to print: it was escaped when it was written, and parsed strictly. */
static void print_record(const struct aw_record *record)
{
	const struct aw_flat_object *o = &record->object;
	char text[AW_FLAT_MAX];

	(void)aw_flat_text(o->field[2].raw, text, sizeof(text));
	(void)printf("%.23s %-17.*s", text, (int)record->kind_name.len, record->kind_name.ptr);
	for (size_t i = AW_RECORD_FIRST; i + AW_RECORD_BEHIND < o->count; i++) {
		(void)aw_flat_text(o->field[i].raw, text, sizeof(text));
		if (text[0] != '\0')
			(void)printf(" %.*s=%s", (int)o->field[i].key.len, o->field[i].key.ptr,
				     text);
	}
	(void)putchar('\n');
}

static void print_line(const struct choice *choice, const struct aw_line *line)
{
	if (line->flaw != AW_LINE_WHOLE) {
		(void)fprintf(stderr,
			      "warden: line %llu of segment %u is damaged: warden audit verify\n",
			      (unsigned long long)line->number, line->segment);
		return;
	}
	if (!is_chosen(choice, line->record.kind_name))
		return;
	if (choice->wants_json)
		(void)printf("%.*s\n", (int)line->text.len, line->text.ptr);
	else
		print_record(&line->record);
}

static int print_journal(const struct choice *choice, int dir, struct aw_error *err)
{
	autodrop(aw_reader_drop) struct aw_reader *reader = NULL;
	struct aw_line line;
	bool has_ended = false;
	int r = aw_reader_new(dir, &reader, err);

	if (r < 0)
		return r;
	for (;;) {
		while ((r = aw_reader_next(reader, &line, err)) > 0) {
			print_line(choice, &line);
			has_ended = line.flaw == AW_LINE_WHOLE &&
				    line.record.kind == AW_EVENT_SESSION_END;
		}
		if (r < 0 || !choice->is_following || has_ended)
			return r;
		(void)fflush(stdout);
		r = aw_reader_wait(reader, -1, err);
		if (r < 0)
			return r;
	}
}

static int parse(char *const *args, struct choice *ret)
{
	*ret = (struct choice){ 0 };
	for (; *args != NULL; args++) {
		const char *word = *args;

		if (strcmp(word, "-f") == 0 || strcmp(word, "--follow") == 0)
			ret->is_following = true;
		else if (strcmp(word, "--json") == 0)
			ret->wants_json = true;
		else if (strcmp(word, "proxy") == 0 && ret->operand == NULL) {
			ret->prefix[0] = "net.";
			ret->prefix[1] = "dns.";
		} else if (strcmp(word, "audit") == 0 && ret->operand == NULL)
			ret->prefix[0] = NULL;
		else if (word[0] == '-' || ret->operand != NULL)
			return aw_cli_usage("logs", "'%s' is not understood", word);
		else
			ret->operand = word;
	}
	return 0;
}

/* The session that is meant: of those that run, else of all; without a name the newest. */
static int open_journal(const char *operand, char *ret_id, struct aw_error *err)
{
	struct aw_registry registry = { 0 };
	struct aw_session_meta meta;
	struct aw_cli_place place;
	int r = aw_cli_open_place(&place, err), fd;

	if (r < 0)
		return r;
	r = aw_registry_find(&place.state, AW_REGISTRY_ALIVE, operand, &meta, err);
	if (r == -ENOENT && operand != NULL)
		r = aw_registry_find(&place.state, AW_REGISTRY_ALL, operand, &meta, err);
	if (r == -ENOENT && operand == NULL) {
		r = aw_registry_list(&place.state, AW_REGISTRY_ALL, &registry, err);
		if (r == 0 && registry.count == 0)
			r = aw_refuse(err, ENOENT, "there has been no session yet");
		if (r == 0)
			memcpy(meta.id, registry.entry[0].id, sizeof(meta.id));
		aw_registry_fini(&registry);
	}
	fd = r < 0 ? r : aw_session_open_dir(&place.state, meta.id, err);
	if (fd >= 0)
		memcpy(ret_id, meta.id, sizeof(meta.id));
	aw_cli_close_place(&place);
	return fd;
}

int aw_verb_logs(char *const *args)
{
	char id[AW_SESSION_ID_LEN + 1];
	autoclose int dir = -EBADF;
	struct aw_error err = { 0 };
	struct choice choice;
	int r = parse(args, &choice);

	if (r != 0)
		return r;
	dir = open_journal(choice.operand, id, &err);
	if (dir < 0 || print_journal(&choice, dir, &err) < 0)
		return aw_cli_fail(err.code == ENOENT ? AW_EXIT_NO : AW_EXIT_USAGE, &err);
	return AW_EXIT_OK;
}

int aw_verb_audit(char *const *args)
{
	static struct aw_verify result;
	char id[AW_SESSION_ID_LEN + 1], text[256];
	autoclose int dir = -EBADF;
	struct aw_error err = { 0 };

	if (args[0] == NULL || strcmp(args[0], "verify") != 0)
		return aw_cli_usage("audit", "audit knows `verify` in this version");
	dir = open_journal(args[1], id, &err);
	if (dir < 0 || aw_verify(dir, id, &result, &err) < 0)
		return aw_cli_fail(err.code == ENOENT ? AW_EXIT_NO : AW_EXIT_USAGE, &err);
	for (size_t i = 0; i < result.finding_count && i < AW_VERIFY_FINDINGS_MAX; i++) {
		aw_finding_describe(&result.finding[i], text, sizeof(text));
		(void)printf("%s\n", text);
	}
	(void)printf("session %s: %llu records in %u segments, %s%s%s\n", id,
		     (unsigned long long)result.records, result.segments,
		     result.finding_count == 0 ? "the chain holds" : "NOT intact",
		     result.is_torn ? ", the last line is torn (a kill in the middle of a write)"
				    : "",
		     result.is_anchored ? "" : ", no end is written yet");
	return result.finding_count == 0 ? AW_EXIT_OK : AW_EXIT_NO;
}
