#include "confine/posture.h"

#include <errno.h>
#include <string.h>

#include "base/own.h"

static const struct field {
	const char *key;
	size_t offset, count;
	unsigned base;
} fields[] = {
#define FIELD(key, member, base)                                                               \
	{                                                                                      \
		key, offsetof(struct aw_posture_status, member),                               \
			sizeof(((struct aw_posture_status *)NULL)->member) / sizeof(uint64_t), \
			base                                                                   \
	}
	FIELD("Uid:", uid, 10),
	FIELD("Gid:", gid, 10),
	FIELD("CapInh:", capabilities[0], 16),
	FIELD("CapPrm:", capabilities[1], 16),
	FIELD("CapEff:", capabilities[2], 16),
	FIELD("CapBnd:", capabilities[3], 16),
	FIELD("CapAmb:", capabilities[4], 16),
	FIELD("NoNewPrivs:", no_new_privs, 10),
	FIELD("Seccomp:", seccomp, 10),
#undef FIELD
};

static const char *const capability_sets[] = { "CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb" };

static int digit_of(char c)
{
	static const char digits[] = "0123456789abcdef";
	const char *found = c != '\0' ? strchr(digits, c) : NULL;

	return found != NULL ? (int)(found - digits) : -1;
}

/* At most 16 digits, so that nothing can wrap. */
static bool parse_number(struct aw_str text, unsigned base, uint64_t *ret)
{
	uint64_t value = 0;

	if (text.len == 0 || text.len > 16)
		return false;
	for (size_t i = 0; i < text.len; i++) {
		int digit = digit_of(text.ptr[i]);

		if (digit < 0 || (unsigned)digit >= base)
			return false;
		value = value * base + (unsigned)digit;
	}
	*ret = value;
	return true;
}

static bool parse_field(const struct field *field, struct aw_str values, uint64_t *ret)
{
	struct aw_str rest = aw_str_trim(values), part;
	size_t count = 0;

	while (aw_str_next(&rest, '\t', &part))
		if (count == field->count || !parse_number(part, field->base, ret + count++))
			return false;
	return count == field->count;
}

static const struct field *find_field(struct aw_str line)
{
	for (size_t i = 0; i < AW_ARRAY_LEN(fields); i++)
		if (aw_str_starts(line, fields[i].key))
			return fields + i;
	return NULL;
}

int aw_posture_parse_status(struct aw_str text, struct aw_posture_status *ret, struct aw_error *err)
{
	struct aw_posture_status status = { 0 };
	struct aw_str rest = text, line;
	unsigned seen = 0;

	while (aw_str_next(&rest, '\n', &line)) {
		const struct field *field = find_field(line);
		unsigned bit;

		if (field == NULL)
			continue;
		bit = 1u << (field - fields);
		line.ptr += strlen(field->key);
		line.len -= strlen(field->key);
		if ((seen & bit) != 0 ||
		    !parse_field(field, line,
				 (uint64_t *)(void *)((char *)&status + field->offset)))
			return aw_refuse(err, EBADMSG, "process status: bad line '%s'", field->key);
		seen |= bit;
	}
	for (size_t i = 0; i < AW_ARRAY_LEN(fields); i++)
		if ((seen & 1u << i) == 0)
			return aw_refuse(err, EBADMSG, "process status: no line '%s'",
					 fields[i].key);
	*ret = status;
	return 0;
}

int aw_posture_judge_identity(const struct aw_posture_status *status,
			      const struct aw_posture_expected *expected, struct aw_error *err)
{
	for (size_t i = 0; i < AW_ARRAY_LEN(status->uid); i++)
		if (status->uid[i] != expected->uid || status->gid[i] != expected->gid)
			return aw_refuse(err, EACCES, "identity is %llu:%llu, not %u:%u",
					 (unsigned long long)status->uid[i],
					 (unsigned long long)status->gid[i], expected->uid,
					 expected->gid);
	return 0;
}

int aw_posture_judge_capabilities(const struct aw_posture_status *status, struct aw_error *err)
{
	for (size_t i = 0; i < AW_ARRAY_LEN(capability_sets); i++)
		if (status->capabilities[i] != 0)
			return aw_refuse(err, EACCES, "%s is %#llx, not empty", capability_sets[i],
					 (unsigned long long)status->capabilities[i]);
	return 0;
}

struct mount {
	struct aw_str point, options;
};

/*
 * proc_pid_mountinfo(5): ID PARENT MAJOR:MINOR ROOT POINT OPTIONS [TAG...] - TYPE SOURCE SUPER.
 * Blanks, newlines and backslashes in paths are octal escapes. OPTIONS are those of the mount.
 * Returns 1 for a mount, 0 at the end.
 */
static int next_mount(struct aw_str *rest, struct mount *ret, struct aw_error *err)
{
	struct aw_str line = { NULL, 0 }, part[6];

	while (line.len == 0)
		if (!aw_str_next(rest, '\n', &line))
			return 0;
	for (size_t i = 0; i < AW_ARRAY_LEN(part); i++)
		if (!aw_str_next(&line, ' ', part + i) || part[i].len == 0)
			return aw_refuse(err, EBADMSG, "mount table: bad line");
	*ret = (struct mount){ .point = part[4], .options = part[5] };
	return 1;
}

static bool has_option(struct aw_str options, const char *name)
{
	struct aw_str part;

	while (aw_str_next(&options, ',', &part))
		if (aw_str_is(part, name))
			return true;
	return false;
}

static bool may_have_devices(struct aw_str point, const struct aw_posture_expected *expected)
{
	for (size_t i = 0; i < expected->device_mount_count; i++)
		if (aw_str_is(point, expected->device_mounts[i]))
			return true;
	return false;
}

static int refuse_mount(struct aw_str point, const char *lacks, struct aw_error *err)
{
	char name[256];

	(void)aw_str_escape(point, name, sizeof(name));
	return aw_refuse(err, EACCES, "the mount at '%s' is not %s", name, lacks);
}

int aw_posture_judge_mounts(struct aw_str text, const struct aw_posture_expected *expected,
			    struct aw_error *err)
{
	struct aw_str rest = text;
	struct mount mount;
	size_t count = 0;
	int r;

	while ((r = next_mount(&rest, &mount, err)) > 0) {
		count++;
		if (!has_option(mount.options, "nosuid"))
			return refuse_mount(mount.point, "nosuid", err);
		if (!has_option(mount.options, "nodev") && !may_have_devices(mount.point, expected))
			return refuse_mount(mount.point, "nodev", err);
	}
	if (r == 0 && count == 0)
		return aw_refuse(err, EBADMSG, "mount table: empty");
	return r;
}

int aw_posture_judge_root(struct aw_str text, struct aw_error *err)
{
	struct aw_str rest = text;
	struct mount mount;
	bool is_read_only = false;
	int r;

	/* Where mounts lie upon one another at the root, the last one is what is seen. */
	while ((r = next_mount(&rest, &mount, err)) > 0)
		if (aw_str_is(mount.point, "/"))
			is_read_only = has_option(mount.options, "ro");
	if (r == 0 && !is_read_only)
		return refuse_mount(AW_STR("/"), "read-only", err);
	return r;
}

bool aw_posture_is_unreachable(int code)
{
	/* EADDRNOTAVAIL, EAFNOSUPPORT: IPv6 is switched off or not built. */
	return code == ENETUNREACH || code == EHOSTUNREACH || code == EADDRNOTAVAIL ||
	       code == EAFNOSUPPORT;
}
