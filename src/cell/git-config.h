/*
 * git-config - the text of a git configuration file, as git-config(1) reads it.
 *
 *	[section]                       names: "section.key"
 *		key = value             and "section.Sub section.key"
 *	[section "Sub section"]
 *		key = "quoted # value" \
 *			that goes on    # comment
 *		key                     (no value: true)
 *
 * Section and key are the same in either case and given in lower case, a sub-section as it is. What git
 * would refuse is refused. Includes are settings like others: nothing is opened here. Pure.
 */
#pragma once

#include <stddef.h>

#include "base/error.h"
#include "base/str.h"

#define AW_GIT_CONFIG_MAX (256 * 1024)

struct aw_git_setting {
	char *name, *value; /* value NULL: a key without one */
};

struct aw_git_config {
	struct aw_git_setting *setting; /* as they come in the file, all of them */
	size_t count;
};

/* 0, -ENOMEM, or -EBADMSG with the line. @ret is to be finished in any case. */
int aw_git_config_parse(struct aw_str text, struct aw_git_config *ret, struct aw_error *err);
void aw_git_config_fini(struct aw_git_config *config);

/* The last value of @name, which is the one that counts; NULL when there is none. */
const char *aw_git_config_get(const struct aw_git_config *config, const char *name);
