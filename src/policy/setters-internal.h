/*
 * setters - how the values of a policy's keys get into a struct aw_layer.
 *
 * Each stores a value that has its type and bounds already, at row->offset of the target, or reports
 * what only it can see. All answer 0 or -ENOMEM.
 */
#pragma once

#include "policy/keys-internal.h"

extern const char *const aw_preset_words[];
extern const char *const aw_protect_words[];
extern const char *const aw_degraded_words[];

typedef int aw_setter(struct aw_keys *keys, const struct aw_key *row,
		      const struct aw_key_value *value);

aw_setter aw_set_string, aw_set_word, aw_set_bool;              /* char *, char *, bool */
aw_setter aw_set_text_entry, aw_set_word_entry;                 /* lists */
aw_setter aw_set_host_path, aw_set_cell_path;                   /* char *, normalised */
aw_setter aw_set_project_path, aw_set_deny_path, aw_set_mount;  /* lists */
aw_setter aw_set_grant, aw_set_denial, aw_set_port, aw_set_env; /* lists */
aw_setter aw_set_limit, aw_set_branch;
