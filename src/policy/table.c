/*
 * The table of every key that a policy may hold. doc/POLICY.md says what they mean to a person.
 *
 * A row with `needs` is understood but has nothing behind it in this version: a value that would need
 * enforcing is refused by name, one that asks for nothing is accepted.
 */
#include <string.h>

#include "base/own.h"
#include "policy/layer-internal.h"
#include "policy/setters-internal.h"

#define ANY \
	(AW_IN_PRESET | AW_IN_USER | AW_IN_DIRECTORY | AW_IN_AGENT | AW_IN_SYSTEM | AW_IN_PROJECT)
#define TOP (AW_IN_PRESET | AW_IN_USER | AW_IN_SYSTEM | AW_IN_PROJECT)
#define AT(member) offsetof(struct aw_layer, member)
#define OF_MOUNT(member) offsetof(struct aw_policy_entry, member)
#define BILLION 1000000000LL

static bool is_wanted(const json_t *value)
{
	(void)value;
	return true;
}

static bool is_filled(const json_t *value)
{
	return json_is_object(value) ? json_object_size(value) > 0 : json_array_size(value) > 0;
}

static bool is_positive(const json_t *value)
{
	return json_integer_value(value) > 0;
}

static bool is_true(const json_t *value)
{
	return json_is_true(value);
}

static bool is_false(const json_t *value)
{
	return json_is_false(value);
}

static bool is_not_session(const json_t *value)
{
	return strcmp(json_string_value(value), "session") != 0;
}

static bool is_not_native(const json_t *value)
{
	return strcmp(json_string_value(value), "native") != 0;
}

static const char *const method_words[] = { "GET",    "HEAD",    "POST",    "PUT",   "PATCH",
					    "DELETE", "OPTIONS", "CONNECT", "TRACE", NULL };
#define METHODS_OF_CLIENTS 7 /* CONNECT and TRACE are no requests to a granted name */

static bool is_narrower_than_all(const json_t *value)
{
	for (size_t i = 0; i < METHODS_OF_CLIENTS; i++) {
		bool is_there = false;

		for (size_t j = 0; j < json_array_size(value); j++)
			is_there |= strcmp(json_string_value(json_array_get(value, j)),
					   method_words[i]) == 0;
		if (!is_there)
			return true;
	}
	return false;
}

static const char *const mode_words[] = { "ro", "rw", NULL };
static const char *const action_words[] = { "throttle", "deny", "kill", NULL };
static const char *const trip_words[] = { "kill", "freeze", "quarantine", "alert", NULL };
static const char *const level_words[] = { "session", "security", "files", "full", NULL };
static const char *const runtime_words[] = { "native", "crun", "runc", "runsc", "kata", NULL };

static const char leave_out[] = "leave it out";
static const char no_decoys[] = "leave \"canary\" out; there are no decoys yet";
static const char no_inspection[] = "leave it out; names are granted whole, TLS is not opened";

#define FS "capabilities/file_system"
#define NET "capabilities/network"
#define CODE "capabilities/code_execution"

const struct aw_key aw_layer_keys[] = {
	AW_ROW("version", AW_KEY_INT, TOP, 1, 1, 0, NULL),
	AW_ROW_WORDS("extends", AW_KEY_WORD, TOP | AW_IN_DIRECTORY, aw_preset_words, AT(extends),
		     aw_set_word),
	AW_ROW("default_agent", AW_KEY_STRING, AW_IN_USER | AW_IN_DIRECTORY, 0, 64,
	       AT(default_agent), aw_set_string),

	AW_ROW_OBJECT("capabilities", ANY),
	AW_ROW_OBJECT(FS, ANY),
	AW_ROW(FS "/read_paths", AW_KEY_STRINGS, ANY, 0, 256, AT(read), aw_set_project_path),
	AW_ROW(FS "/write_paths", AW_KEY_STRINGS, ANY, 0, 256, AT(write), aw_set_project_path),
	AW_ROW(FS "/deny_paths", AW_KEY_STRINGS, ANY, 0, 256, AT(deny), aw_set_deny_path),
	AW_ROW_LATER(FS "/exec_paths", AW_KEY_STRINGS, ANY, 0, 256, NULL, is_wanted,
		     "leave it out; whatever can be read can be executed"),
	AW_ROW_LATER(FS "/delete", AW_KEY_BOOL, ANY, 0, 0, NULL, is_false,
		     "use write_paths to say where anything may be changed at all"),
	AW_ROW(FS "/mounts", AW_KEY_OBJECTS, ANY, 0, 0, AT(mounts), aw_set_mount),
	AW_ROW(FS "/mounts/host", AW_KEY_STRING, ANY, 0, 4096, OF_MOUNT(host), aw_set_host_path),
	AW_ROW(FS "/mounts/at", AW_KEY_STRING, ANY, 0, 4096, OF_MOUNT(text), aw_set_cell_path),
	AW_ROW_WORDS(FS "/mounts/mode", AW_KEY_WORD, ANY, mode_words, OF_MOUNT(is_writable),
		     aw_set_bool),
	AW_ROW_WORDS(FS "/protect", AW_KEY_WORDS, ANY, aw_protect_words, AT(protect),
		     aw_set_word_entry),

	AW_ROW_OBJECT(NET, ANY),
	AW_ROW(NET "/allowed_domains", AW_KEY_STRINGS, ANY, 0, 1024, AT(allowed), aw_set_grant),
	AW_ROW(NET "/denied_domains", AW_KEY_STRINGS, ANY, 0, 1024, AT(denied), aw_set_denial),
	AW_ROW(NET "/allow_private", AW_KEY_STRINGS, ANY, 0, 256, AT(private), aw_set_grant),
	AW_ROW(NET "/allowed_ports", AW_KEY_INTS, ANY, 1, 65535, AT(ports), aw_set_port),
	AW_ROW(NET "/blocked_ports", AW_KEY_INTS, ANY, 1, 65535, AT(blocked), aw_set_port),
	AW_ROW(NET "/offline", AW_KEY_BOOL, ANY, 0, 0, AT(is_offline), aw_set_bool),
	AW_ROW_LATER(NET "/allowed_methods", AW_KEY_WORDS, ANY, 0, 0, method_words,
		     is_narrower_than_all, no_inspection),
	AW_ROW_LATER(NET "/publish", AW_KEY_INTS, ANY, 1, 65535, NULL, is_filled,
		     "leave it out; a port of the cell cannot be reached from the host yet"),
	AW_ROW_LATER(NET "/host_ports", AW_KEY_INTS, ANY, 1, 65535, NULL, is_filled,
		     "leave it out; the host's loopback cannot be reached from the cell yet"),
	AW_ROW_LATER(NET "/inspect", AW_KEY_STRINGS, ANY, 0, 256, NULL, is_filled, no_inspection),
	AW_ROW_OBJECT(NET "/budgets", ANY),
	AW_ROW_LATER(NET "/budgets/*", AW_KEY_OBJECT, ANY, 0, 0, NULL, is_filled, leave_out),
	AW_ROW(NET "/budgets/*/bytes_out", AW_KEY_INT, ANY, 1, BILLION * 1000, 0, NULL),

	AW_ROW_OBJECT(CODE, ANY),
	AW_ROW_LATER(CODE "/allowed", AW_KEY_BOOL, ANY, 0, 0, NULL, is_false,
		     "leave it out; an agent that may run nothing cannot be started"),
	AW_ROW_LATER(CODE "/nested", AW_KEY_BOOL, ANY, 0, 0, NULL, is_true,
		     "leave it out; no sandbox can be made inside the cell yet"),
	AW_ROW(CODE "/max_execution_time_s", AW_KEY_INT, ANY, 0, BILLION, AW_LIMIT_TIME_S,
	       aw_set_limit),
	AW_ROW(CODE "/max_memory_mb", AW_KEY_INT, ANY, 0, BILLION, AW_LIMIT_MEMORY_MB,
	       aw_set_limit),
	AW_ROW(CODE "/max_processes", AW_KEY_INT, ANY, 0, 4194304, AW_LIMIT_PROCESSES,
	       aw_set_limit),
	AW_ROW(CODE "/max_cpus", AW_KEY_NUMBER, ANY, 0, 65536, AW_LIMIT_CPU_MILLI, aw_set_limit),
	AW_ROW(CODE "/max_open_files", AW_KEY_INT, ANY, 0, 1048576, AW_LIMIT_OPEN_FILES,
	       aw_set_limit),
	AW_ROW(CODE "/max_io_mb_s", AW_KEY_INT, ANY, 0, 1000000, AW_LIMIT_IO_MB_S, aw_set_limit),
	AW_ROW_LATER(CODE "/max_disk_mb", AW_KEY_INT, ANY, 0, BILLION, NULL, is_positive,
		     leave_out),

	AW_ROW_LATER("credentials", AW_KEY_OBJECTS, ANY, 0, 0, NULL, is_filled,
		     "pass the key to the agent with env.pass or --env"),
	AW_ROW("credentials/env", AW_KEY_STRING, ANY, 0, 256, 0, NULL),
	AW_ROW("credentials/host", AW_KEY_STRING, ANY, 0, 260, 0, NULL),
	AW_ROW("credentials/header", AW_KEY_STRING, ANY, 0, 256, 0, NULL),
	AW_ROW_OBJECT("env", ANY),
	AW_ROW("env/pass", AW_KEY_STRINGS, ANY, 0, 256, AT(env), aw_set_env),
	AW_ROW_OBJECT("rate_limits", ANY),
	AW_ROW_LATER("rate_limits/*", AW_KEY_OBJECT, ANY, 0, 0, NULL, is_wanted,
		     "leave it out; no rates are counted yet"),
	AW_ROW("rate_limits/*/per_minute", AW_KEY_INT, ANY, 1, BILLION, 0, NULL),
	AW_ROW_WORDS("rate_limits/*/action", AW_KEY_WORD, ANY, action_words, 0, NULL),
	AW_ROW_OBJECT("canary", ANY),
	AW_ROW_LATER("canary/action", AW_KEY_WORD, ANY, 0, 0, trip_words, is_wanted, no_decoys),
	AW_ROW_LATER("canary/decoys", AW_KEY_STRINGS, ANY, 0, 256, NULL, is_wanted, no_decoys),
	AW_ROW_OBJECT("audit", ANY),
	AW_ROW_LATER("audit/level", AW_KEY_WORD, ANY, 0, 0, level_words, is_not_session,
		     "write \"session\": start, end, verdicts and refusals are journalled"),
	AW_ROW_LATER("baseline", AW_KEY_FREE, ANY, 0, 0, NULL, is_filled,
		     "leave it out; nothing is learned yet"),
	AW_ROW_LATER("guard", AW_KEY_FREE, ANY, 0, 0, NULL, is_filled,
		     "leave it out; output is not filtered yet"),
	AW_ROW_LATER("runtime", AW_KEY_WORD, ANY, 0, 0, runtime_words, is_not_native,
		     "write \"native\" or leave it out"),
	AW_ROW_WORDS("allow_degraded", AW_KEY_WORDS, ANY, aw_degraded_words, AT(degraded),
		     aw_set_word_entry),

	AW_ROW_OBJECT("agents", AW_IN_USER),
	AW_ROW("agents/*", AW_KEY_BRANCH, AW_IN_USER, 0, 0, AW_BRANCH_AGENT, aw_set_branch),
	AW_ROW_OBJECT("projects", AW_IN_USER),
	AW_ROW("projects/*", AW_KEY_BRANCH, AW_IN_USER, 0, 0, AW_BRANCH_DIRECTORY, aw_set_branch),
	AW_ROW_OBJECT("groups", AW_IN_PRESET),
	AW_ROW("groups/*", AW_KEY_STRINGS, AW_IN_PRESET, 0, 1024, AT(allowed), aw_set_grant),
};

const size_t aw_layer_key_count = AW_ARRAY_LEN(aw_layer_keys);
