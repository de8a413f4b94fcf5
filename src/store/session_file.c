/*
 * session.json  
 * {"v":1,"id":"k3v9x0ab","project":"/home/u/p","agent":"claude","run":"/run/user/1000/warden",
 *                 "host":"box","started":<ns>,"pid":4711,"pid_started":<ticks>,"uid":1000}
 * status.json    {"v":1,"reason":"exited","exit_code":0,"started":<ns>,"ended":<ns>,"detail":""}
 */
#include <errno.h>
#include <string.h>

#include "base/own.h"
#include "event/flat.h"
#include "store/file.h"
#include "store/session-internal.h"

#define VERSION 1

static const char *const reasons[AW_SESSION_REASON_COUNT] = {
	[AW_SESSION_EXITED] = "exited",       [AW_SESSION_TIME_LIMIT] = "time-limit",
	[AW_SESSION_LIMIT] = "limit",         [AW_SESSION_REFUSED] = "refused",
	[AW_SESSION_STOPPED] = "stopped",     [AW_SESSION_BREACH] = "breach",
	[AW_SESSION_GATE_DIED] = "gate-died", [AW_SESSION_JOURNAL_FAILED] = "journal-failed",
	[AW_SESSION_FAILED] = "failed",       [AW_SESSION_UNEXPECTED] = "unexpected",
};

const char *aw_session_reason_name(enum aw_session_end_reason reason)
{
	return reasons[reason];
}

static int write_flat(int dir_fd, const char *name, struct aw_flat *flat, struct aw_error *err)
{
	if (flat->is_cut)
		return aw_fail(err, ENAMETOOLONG, "write '%s'", name);
	return aw_file_replace(dir_fd, name, aw_flat_end(flat, (struct aw_str){ 0 }), err);
}

int aw_session_write_meta(int dir_fd, const struct aw_session_meta *meta, struct aw_error *err)
{
	struct aw_flat flat;

	aw_flat_begin(&flat, 0, AW_FLAT_MAX);
	aw_flat_add_u64(&flat, "v", VERSION);
	aw_flat_add_str(&flat, "id", aw_str_from(meta->id));
	aw_flat_add_str(&flat, "project", aw_str_from(meta->project));
	aw_flat_add_str(&flat, "agent", aw_str_from(meta->agent));
	aw_flat_add_str(&flat, "run", aw_str_from(meta->run_path));
	aw_flat_add_str(&flat, "host", aw_str_from(meta->host));
	aw_flat_add_u64(&flat, "started", meta->started_ns);
	aw_flat_add_u64(&flat, "pid", (uint64_t)meta->pid);
	aw_flat_add_u64(&flat, "pid_started", meta->pid_started);
	aw_flat_add_u64(&flat, "uid", meta->uid);
	return write_flat(dir_fd, AW_SESSION_META_NAME, &flat, err);
}

int aw_session_write_status(int dir_fd, const struct aw_session_status *status,
			    struct aw_error *err)
{
	struct aw_flat flat;

	aw_flat_begin(&flat, 0, AW_FLAT_MAX);
	aw_flat_add_u64(&flat, "v", VERSION);
	aw_flat_add_str(&flat, "reason", aw_str_from(reasons[status->reason]));
	aw_flat_add_i64(&flat, "exit_code", status->exit_code);
	aw_flat_add_u64(&flat, "started", status->started_ns);
	aw_flat_add_u64(&flat, "ended", status->ended_ns);
	aw_flat_add_str(&flat, "detail", aw_str_from(status->detail));
	return write_flat(dir_fd, AW_SESSION_STATUS_NAME, &flat, err);
}

/* Read @name and parse it into @ret, which points into *ret_text. */
static int read_flat(int dir_fd, const char *name, char **ret_text, struct aw_flat_object *ret,
		     struct aw_error *err)
{
	ssize_t n = aw_file_read(dir_fd, name, AW_FLAT_MAX, ret_text, err);
	uint64_t version;

	if (n < 0)
		return (int)n;
	if (n == 0 || (*ret_text)[n - 1] != '\n' ||
	    aw_flat_parse((struct aw_str){ *ret_text, (size_t)n - 1 }, ret) < 0 ||
	    aw_flat_get_u64(aw_flat_find(ret, "v"), &version) < 0 || version != VERSION)
		return aw_refuse(err, EBADMSG, "'%s' is malformed", name);
	return 0;
}

/* A text of at most @size - 1 bytes without a NUL, whole. */
static bool get_text(const struct aw_flat_object *object, const char *key, char *out, size_t size)
{
	const struct aw_flat_field *field = aw_flat_find(object, key);
	size_t len;

	if (field == NULL || field->type != AW_FLAT_STR)
		return false;
	return aw_flat_bytes(field->raw, out, size, &len) == 0 && strlen(out) == len;
}

static bool get_number(const struct aw_flat_object *object, const char *key, uint64_t max,
		       uint64_t *ret)
{
	return aw_flat_get_u64(aw_flat_find(object, key), ret) == 0 && *ret <= max;
}

static bool parse_texts(const struct aw_flat_object *object, struct aw_session_meta *meta)
{
	return get_text(object, "id", meta->id, sizeof(meta->id)) &&
	       get_text(object, "project", meta->project, sizeof(meta->project)) &&
	       get_text(object, "agent", meta->agent, sizeof(meta->agent)) &&
	       get_text(object, "run", meta->run_path, sizeof(meta->run_path)) &&
	       get_text(object, "host", meta->host, sizeof(meta->host)) &&
	       aw_session_is_id(meta->id) && meta->project[0] == '/' && meta->run_path[0] == '/';
}

static bool parse_meta(const struct aw_flat_object *object, struct aw_session_meta *meta)
{
	uint64_t pid, uid;

	if (!parse_texts(object, meta) ||
	    !get_number(object, "started", UINT64_MAX, &meta->started_ns) ||
	    !get_number(object, "pid", INT32_MAX, &pid) || pid == 0 ||
	    !get_number(object, "pid_started", UINT64_MAX, &meta->pid_started) ||
	    !get_number(object, "uid", UINT32_MAX, &uid))
		return false;
	meta->pid = (pid_t)pid;
	meta->uid = (uid_t)uid;
	return true;
}

int aw_session_read_meta(int dir_fd, struct aw_session_meta *ret, struct aw_error *err)
{
	autofree char *text = NULL;
	struct aw_flat_object object;
	struct aw_session_meta meta;
	int r = read_flat(dir_fd, AW_SESSION_META_NAME, &text, &object, err);

	if (r < 0)
		return r;
	if (!parse_meta(&object, &meta))
		return aw_refuse(err, EBADMSG, "'" AW_SESSION_META_NAME "' is malformed");
	*ret = meta;
	return 0;
}

static bool parse_reason(const char *name, enum aw_session_end_reason *ret)
{
	for (size_t i = AW_SESSION_EXITED; i < AW_SESSION_REASON_COUNT; i++) {
		if (strcmp(name, reasons[i]) != 0)
			continue;
		*ret = (enum aw_session_end_reason)i;
		return true;
	}
	return false;
}

static bool parse_status(const struct aw_flat_object *object, struct aw_session_status *status)
{
	char reason[32];
	int64_t exit_code;

	if (!get_text(object, "reason", reason, sizeof(reason)) ||
	    !parse_reason(reason, &status->reason) ||
	    !get_text(object, "detail", status->detail, sizeof(status->detail)) ||
	    aw_flat_get_i64(aw_flat_find(object, "exit_code"), &exit_code) < 0 || exit_code < -1 ||
	    exit_code > 255 || !get_number(object, "started", UINT64_MAX, &status->started_ns) ||
	    !get_number(object, "ended", UINT64_MAX, &status->ended_ns))
		return false;
	status->exit_code = (int)exit_code;
	return true;
}

int aw_session_read_status(int dir_fd, struct aw_session_status *ret, struct aw_error *err)
{
	autofree char *text = NULL;
	struct aw_flat_object object;
	struct aw_session_status status;
	int r = read_flat(dir_fd, AW_SESSION_STATUS_NAME, &text, &object, err);

	if (r < 0)
		return r;
	if (!parse_status(&object, &status))
		return aw_refuse(err, EBADMSG, "'" AW_SESSION_STATUS_NAME "' is malformed");
	*ret = status;
	return 0;
}
