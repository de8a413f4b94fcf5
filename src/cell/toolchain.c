#include "cell/toolchain.h"

#include <errno.h>
#include <limits.h>
#include <unistd.h>

#include "base/own.h"
#include "base/str.h"

/* All relative to the home directory. */
static const struct toolchain {
	const char *tree;     /* granted */
	const char *bin;      /* put on PATH; NULL: nothing, or it is on the caller's PATH */
	const char *variable; /* set to `tree`, or to `value` */
	const char *value;
	const char *masks[2]; /* private things in it */
} toolchains[] = {
	{ ".cargo/bin", ".cargo/bin", NULL, NULL, { NULL } },
	{ ".rustup", NULL, "RUSTUP_HOME", NULL, { NULL } },
	{ ".nvm", NULL, "NVM_DIR", NULL, { ".nvm/.npmrc", NULL } },
	{ ".volta", ".volta/bin", "VOLTA_HOME", NULL, { NULL } },
	{ ".local/share/fnm", NULL, "FNM_DIR", NULL, { NULL } },
	{ ".pyenv", ".pyenv/shims", "PYENV_ROOT", NULL, { NULL } },
	{ ".rbenv", ".rbenv/shims", "RBENV_ROOT", NULL, { NULL } },
	{ ".asdf", ".asdf/shims", "ASDF_DATA_DIR", NULL, { NULL } },
	{ ".local/share/mise", ".local/share/mise/shims", "MISE_DATA_DIR", NULL, { NULL } },
	{ ".local/share/uv",
	  NULL,
	  "UV_PYTHON_INSTALL_DIR",
	  ".local/share/uv/python",
	  { ".local/share/uv/credentials", NULL } },
	{ ".local/bin/uv", ".local/bin", NULL, NULL, { NULL } },
	{ ".local/bin/uvx", ".local/bin", NULL, NULL, { NULL } },
	{ "go/bin", "go/bin", NULL, NULL, { NULL } },
	{ ".bun/bin", ".bun/bin", NULL, NULL, { NULL } },
	{ ".deno/bin", ".deno/bin", NULL, NULL, { NULL } },
	{ ".sdkman/candidates", NULL, NULL, NULL, { NULL } },
	{ ".ghcup/bin", ".ghcup/bin", NULL, NULL, { NULL } },
	{ ".juliaup/bin", ".juliaup/bin", NULL, NULL, { NULL } },
	{ ".local/share/pnpm", ".local/share/pnpm", NULL, NULL, { NULL } },
};

static bool in_home(const char *home, const char *name, char *path)
{
	return aw_str_format(path, PATH_MAX, "%s/%s", home, name) >= 0 && access(path, F_OK) == 0;
}

static int grant_one(const char *home, const struct toolchain *t, struct aw_grants *g,
		     struct aw_error *err)
{
	char path[PATH_MAX];

	if (!in_home(home, t->tree, path))
		return 0;
	if (aw_grants_bind(g, path, path, false, err) < 0)
		return -err->code;
	for (size_t i = 0; i < AW_ARRAY_LEN(t->masks) && t->masks[i] != NULL; i++)
		if (in_home(home, t->masks[i], path) && aw_grants_add(&g->masks, path, err) < 0)
			return -err->code;
	if (t->bin != NULL && in_home(home, t->bin, path))
		return aw_grants_add(&g->path, path, err);
	return 0;
}

int aw_toolchain_grant(const char *home, struct aw_grants *g, struct aw_error *err)
{
	for (size_t i = 0; i < AW_ARRAY_LEN(toolchains); i++)
		if (grant_one(home, &toolchains[i], g, err) < 0)
			return -err->code;
	return 0;
}

int aw_toolchain_variables(const char *home,
			   int (*add)(void *data, const char *name, const char *value), void *data)
{
	for (size_t i = 0; i < AW_ARRAY_LEN(toolchains); i++) {
		const struct toolchain *t = &toolchains[i];
		char path[PATH_MAX];
		int r;

		if (t->variable == NULL ||
		    !in_home(home, t->value != NULL ? t->value : t->tree, path))
			continue;
		r = add(data, t->variable, path);
		if (r < 0)
			return r;
	}
	return 0;
}
