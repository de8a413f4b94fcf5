/*
 * live-guard-internal - the state of the watch over protected files; live-guard.c watches and puts
 * back, live-guard-names.c knows names and tells about them.
 */
#pragma once

#include "monitor/held.h"
#include "monitor/live-internal.h"

enum guard_state {
	GUARD_WATCHING,
	GUARD_FREEZING, /* a mount is missing, the cell was told to stop */
	GUARD_SETTLING, /* the cell stands still: what happens to names now is the host */
};

struct guard_dir {
	int wd;
	char *host; /* directory on the host */
};

struct aw_live_guard {
	struct aw_live *live;
	enum guard_state state;
	struct aw_watch mounts, names, settle;
	struct guard_dir *dirs;
	size_t dir_count;
	struct aw_held held;
	struct aw_texts created;  /* protected names that came into being */
	struct aw_texts restored; /* files */
	struct aw_texts replaced; /* directories: protected again, but not as they were */
	bool is_busy; /* a protected name was touched since the settle timer last fired */
	unsigned settles, kept;
};

/* The host's name of a cell path: they differ only where the project is shown at /workspace. */
int aw_guard_host_path(const struct aw_prepared *p, const char *at, char *out);

/* Whether the host path @host is one of the session's pins or protections. */
bool aw_guard_is_pinned(const struct aw_live *live, const char *host);

void aw_guard_record(struct aw_live *live, enum aw_event_kind kind, const char *path);

/* At the end: names that could not be held because they were not there at the start. */
void aw_guard_find_appeared(struct aw_live_guard *guard);

/* Say on stderr what came into being and what was put back. */
void aw_guard_tell(const struct aw_live_guard *guard);
