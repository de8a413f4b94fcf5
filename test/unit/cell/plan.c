#include "cell/plan.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/own.h"
#include "base/str.h"
#include "support/torture.h"

static struct aw_error err;

struct bytes {
	char *data;
	size_t len;
};

static struct aw_plan_header header_of(struct aw_plan_builder *b)
{
	static char *const argv[] = { (char *)"sh", (char *)"-c", (char *)"", NULL };
	static char *const env[] = { (char *)"A=1", (char *)"B=", NULL };
	static const uint64_t filter[] = { 1, 2, 3 };
	struct aw_plan_header header = { .inside_uid = 1001, .port_count = 2, .port = { 80, 443 } };

	header.hostname = aw_plan_text(b, "warden-sandbox");
	header.cwd = aw_plan_text(b, "/p");
	header.argv = aw_plan_vector(b, argv);
	header.env = aw_plan_vector(b, env);
	header.filter = aw_plan_blob(b, filter, sizeof(filter));
	header.filter_len = sizeof(filter);
	return header;
}

static void add_each_code(struct aw_plan_builder *b)
{
	aw_plan_dir(b, "/d", 0755);
	aw_plan_file(b, "/d/f", 0644, AW_STR("con\0tent"));
	aw_plan_symlink(b, "/l", "d/f");
	aw_plan_tmpfs(b, "/tmp", 01777, 4096);
	aw_plan_proc(b, "/proc");
	aw_plan_devpts(b, "/dev/pts");
	aw_plan_bind(b, "/usr", "/usr", AW_PLAN_READ_ONLY);
	aw_plan_bind(b, "/dev/null", "/dev/null", AW_PLAN_DEVICE);
	aw_plan_tree(b, "/p", 0);
	aw_plan_tree(b, "/q", 0);
	aw_plan_pin(b, "/p/.git", AW_PLAN_OPTIONAL);
	aw_plan_mask(b, "/p/secret", AW_PLAN_OPTIONAL);
	aw_plan_allow(b, "/", AW_PLAN_ACCESS_READ);
	aw_plan_cap(b, "max_mnt_namespaces", 64);
}

/* A sealed plan, read back. The caller frees. */
static int seal(struct aw_plan_builder *b, struct bytes *ret)
{
	struct aw_plan_header header = header_of(b);
	autoclose int fd = aw_plan_seal(b, &header, &err);
	struct stat st;

	if (fd < 0)
		return fd;
	assert_int_equal(fstat(fd, &st), 0);
	ret->len = (size_t)st.st_size;
	ret->data = test_malloc(ret->len);
	assert_int_equal(pread(fd, ret->data, ret->len, 0), ret->len);
	return 0;
}

static struct bytes whole_plan(void)
{
	autodrop(aw_plan_fini) struct aw_plan_builder b;
	struct bytes bytes = { 0 };

	aw_plan_begin(&b);
	add_each_code(&b);
	assert_int_equal(seal(&b, &bytes), 0);
	return bytes;
}

static const struct aw_plan_header *plan_of(const struct bytes *bytes)
{
	return (const void *)bytes->data;
}

static void every_operation_comes_back_as_it_was_put_in(void **state)
{
	struct bytes bytes = whole_plan();
	const struct aw_plan_header *plan = plan_of(&bytes);
	const struct aw_plan_op *op;

	(void)state;
	assert_int_equal(aw_plan_check(bytes.data, bytes.len, &err), 0);
	assert_int_equal(plan->op_count, 14);
	assert_int_equal(plan->allowed_dev_mounts, 1);
	op = aw_plan_op_at(plan, 1);
	assert_int_equal(op->code, AW_PLAN_FILE);
	assert_string_equal(aw_plan_text_at(plan, op->at), "/d/f");
	assert_int_equal(op->blob_len, 8);
	assert_memory_equal(aw_plan_blob_at(plan, op->blob), "con\0tent", 8);
	op = aw_plan_op_at(plan, 2);
	assert_string_equal(aw_plan_text_at(plan, op->source), "d/f");
	op = aw_plan_op_at(plan, 3);
	assert_int_equal(op->mode, 01777);
	assert_int_equal(op->size, 4096);
	assert_int_equal(aw_plan_op_at(plan, 8)->mode, 0);
	assert_int_equal(aw_plan_op_at(plan, 9)->mode, 1);
	op = aw_plan_op_at(plan, 13);
	assert_int_equal(op->at, 0);
	assert_string_equal(aw_plan_text_at(plan, op->source), "max_mnt_namespaces");
	assert_int_equal(op->size, 64);
	test_free(bytes.data);
}

static void the_header_names_its_texts(void **state)
{
	struct bytes bytes = whole_plan();
	const struct aw_plan_header *plan = plan_of(&bytes);
	autofree char **argv = aw_plan_vector_at(plan, plan->argv);
	autofree char **env = aw_plan_vector_at(plan, plan->env);

	(void)state;
	assert_string_equal(aw_plan_text_at(plan, plan->hostname), "warden-sandbox");
	assert_string_equal(argv[1], "-c");
	assert_string_equal(argv[2], "");
	assert_null(argv[3]);
	assert_string_equal(env[1], "B=");
	assert_null(env[2]);
	assert_int_equal(plan->filter % 8, 0); /* struct sock_filter[] wants it */
	assert_int_equal(((const uint64_t *)aw_plan_blob_at(plan, plan->filter))[2], 3);
	test_free(bytes.data);
}

static void what_is_sealed_cannot_be_changed(void **state)
{
	autodrop(aw_plan_fini) struct aw_plan_builder b;
	struct aw_plan_header header;
	autoclose int fd = -EBADF;

	(void)state;
	aw_plan_begin(&b);
	header = header_of(&b);
	fd = aw_plan_seal(&b, &header, &err);
	assert_true(fd >= 0);
	assert_int_equal(pwrite(fd, "x", 1, 0), -1);
	assert_int_equal(ftruncate(fd, 0), -1);
	assert_true(mmap(NULL, 4096, PROT_WRITE, MAP_SHARED, fd, 0) == MAP_FAILED);
	assert_true(fcntl(fd, F_GETFD) & FD_CLOEXEC);
}

/* Read everything that a checked plan names, as warden-cell does; a sanitizer sees a step beyond. */
static size_t read_all(const struct aw_plan_header *plan)
{
	const struct aw_plan_strings *lists[] = { &plan->argv, &plan->env };
	const char *blob = aw_plan_blob_at(plan, plan->filter);
	size_t seen = strlen(aw_plan_text_at(plan, plan->hostname)) +
		      strlen(aw_plan_text_at(plan, plan->cwd));

	for (uint32_t i = 0; i < plan->filter_len; i++)
		seen += blob[i] == 0;
	for (size_t i = 0; i < AW_ARRAY_LEN(lists); i++) {
		autofree char **vector = aw_plan_vector_at(plan, *lists[i]);

		for (size_t k = 0; vector[k] != NULL; k++)
			seen += strlen(vector[k]);
	}
	for (uint32_t i = 0; i < plan->op_count; i++) {
		const struct aw_plan_op *op = aw_plan_op_at(plan, i);

		if (op->code != AW_PLAN_CAP)
			seen += strlen(aw_plan_text_at(plan, op->at));
		if (op->code == AW_PLAN_CAP || op->code == AW_PLAN_BIND ||
		    op->code == AW_PLAN_SYMLINK)
			seen += strlen(aw_plan_text_at(plan, op->source));
		blob = aw_plan_blob_at(plan, op->blob);
		for (uint32_t k = 0; k < op->blob_len; k++)
			seen += blob[k] == 0;
	}
	return seen;
}

/* Check a copy of exactly @len bytes, and read it if it passes. */
static int check_copy(const char *data, size_t len)
{
	char *copy = test_malloc(len);
	int r;

	memcpy(copy, data, len);
	r = aw_plan_check(copy, len, &err);
	if (r == 0)
		assert_true(read_all((const void *)copy) < 1U << 20);
	else
		assert_int_equal(r, -EBADMSG);
	test_free(copy);
	return r;
}

static void every_truncation_is_refused(void **state)
{
	struct bytes bytes = whole_plan();
	struct aw_plan_header *header = (void *)bytes.data;

	(void)state;
	assert_int_equal(check_copy(bytes.data, bytes.len), 0);
	for (size_t len = 1; len < bytes.len; len++)
		assert_int_equal(check_copy(bytes.data, len), -EBADMSG);
	/* One that claims to be whole is read inside its bounds, if at all. */
	for (size_t len = bytes.len - 1; len > sizeof(*header); len--) {
		header->size = (uint32_t)len;
		(void)check_copy(bytes.data, len);
	}
	test_free(bytes.data);
}

static void every_flipped_field_is_refused_or_stays_inside(void **state)
{
	static const uint32_t values[] = { 0, 1, 4, 0x7fffffff, 0x80000000, 0xffffffff };
	struct bytes bytes = whole_plan();
	size_t fixed = sizeof(struct aw_plan_header) + 14 * sizeof(struct aw_plan_op);
	unsigned refused = 0;

	(void)state;
	for (size_t at = 0; at < fixed; at += sizeof(uint32_t)) {
		uint32_t kept, value;

		memcpy(&kept, bytes.data + at, sizeof(kept));
		for (size_t i = 0; i < 2 * AW_ARRAY_LEN(values); i++) {
			value = i < AW_ARRAY_LEN(values)
					? values[i]
					: (uint32_t)bytes.len + values[i - AW_ARRAY_LEN(values)] -
						  2;
			memcpy(bytes.data + at, &value, sizeof(value));
			refused += check_copy(bytes.data, bytes.len) < 0;
		}
		memcpy(bytes.data + at, &kept, sizeof(kept));
	}
	assert_true(refused > 300);
	for (size_t at = 0; at < bytes.len; at++) {
		bytes.data[at] ^= (char)0xff;
		(void)check_copy(bytes.data, bytes.len);
		bytes.data[at] ^= (char)0xff;
	}
	assert_int_equal(check_copy(bytes.data, bytes.len), 0);
	test_free(bytes.data);
}

static struct aw_plan_op *first_op(struct bytes *bytes)
{
	return (void *)(bytes->data + sizeof(struct aw_plan_header));
}

static void refuses_an_operation_that_lacks_what_it_needs(void **state)
{
	struct bytes bytes = whole_plan();
	struct aw_plan_op *op = first_op(&bytes), kept = *op;

	(void)state;
	op->at = 0;
	assert_int_equal(check_copy(bytes.data, bytes.len), -EBADMSG);
	*op = kept;
	op->at = plan_of(&bytes)->hostname; /* not absolute */
	assert_int_equal(check_copy(bytes.data, bytes.len), -EBADMSG);
	*op = kept;
	op->code = AW_PLAN_SYMLINK; /* which needs a source */
	op->source = 0;
	assert_int_equal(check_copy(bytes.data, bytes.len), -EBADMSG);
	*op = kept;
	op->code = AW_PLAN_CODE_COUNT;
	assert_int_equal(check_copy(bytes.data, bytes.len), -EBADMSG);
	op->code = 0;
	assert_int_equal(check_copy(bytes.data, bytes.len), -EBADMSG);
	*op = kept;
	op->blob = (uint32_t)bytes.len;
	op->blob_len = 1;
	assert_int_equal(check_copy(bytes.data, bytes.len), -EBADMSG);
	assert_non_null(strstr(err.message, "operation 0"));
	test_free(bytes.data);
}

static void refuses_a_header_that_no_cell_could_start_from(void **state)
{
	struct bytes bytes = whole_plan();
	struct aw_plan_header *header = (void *)bytes.data, kept = *header;

	(void)state;
	header->argv.count = 0;
	assert_int_equal(check_copy(bytes.data, bytes.len), -EBADMSG);
	*header = kept;
	header->env.count = AW_PLAN_STRINGS_MAX + 1;
	assert_int_equal(check_copy(bytes.data, bytes.len), -EBADMSG);
	*header = kept;
	header->op_count = AW_PLAN_OPS_MAX + 1;
	assert_int_equal(check_copy(bytes.data, bytes.len), -EBADMSG);
	*header = kept;
	header->port_count = AW_PLAN_PORTS_MAX + 1;
	assert_int_equal(check_copy(bytes.data, bytes.len), -EBADMSG);
	*header = kept;
	header->magic++;
	assert_int_equal(check_copy(bytes.data, bytes.len), -EBADMSG);
	*header = kept;
	header->filter_len = (uint32_t)bytes.len;
	assert_int_equal(check_copy(bytes.data, bytes.len), -EBADMSG);
	*header = kept;
	/* The last text of the environment, without the NUL that ended it. */
	header->env.offset = header->size - 1;
	bytes.data[header->size - 1] = 'x';
	assert_int_equal(check_copy(bytes.data, bytes.len), -EBADMSG);
	test_free(bytes.data);
}

static void the_first_failure_of_many_is_what_seal_tells(void **state)
{
	autodrop(aw_plan_fini) struct aw_plan_builder b;
	struct bytes bytes;

	(void)state;
	aw_plan_begin(&b);
	for (unsigned i = 0; i < AW_PLAN_OPS_MAX; i++)
		aw_plan_dir(&b, "/d", 0755);
	aw_plan_dir(&b, "/one-too-many", 0755);
	aw_plan_dir(&b, "/and-another", 0755);
	assert_int_equal(seal(&b, &bytes), -ENOBUFS);
	assert_non_null(strstr(err.message, "/one-too-many"));
}

static void too_many_strings_are_refused_when_sealed(void **state)
{
	static char *many[AW_PLAN_STRINGS_MAX + 2];
	autodrop(aw_plan_fini) struct aw_plan_builder b;
	struct aw_plan_header header;

	(void)state;
	for (size_t i = 0; i <= AW_PLAN_STRINGS_MAX; i++)
		many[i] = (char *)(uintptr_t) "x";
	aw_plan_begin(&b);
	header = header_of(&b);
	header.argv = aw_plan_vector(&b, many);
	assert_int_equal(aw_plan_seal(&b, &header, &err), -E2BIG);
}

static void content_beyond_the_bound_is_refused_when_sealed(void **state)
{
	static char large[AW_PLAN_SIZE_MAX / 2 + 1];
	autodrop(aw_plan_fini) struct aw_plan_builder b;
	struct bytes bytes;

	(void)state;
	aw_plan_begin(&b);
	aw_plan_file(&b, "/large", 0644, (struct aw_str){ large, sizeof(large) });
	assert_int_equal(seal(&b, &bytes), -ENOBUFS);
}

static int build(void *state)
{
	autodrop(aw_plan_fini) struct aw_plan_builder b;
	struct aw_plan_header header;
	int fd;

	(void)state;
	aw_plan_begin(&b);
	add_each_code(&b);
	header = header_of(&b);
	fd = aw_plan_seal(&b, &header, &err);
	if (fd >= 0)
		(void)close(fd);
	return fd < 0 ? fd : 0;
}

static void survives_a_lack_of_memory(void **state)
{
	(void)state;
	assert_true(aw_torture(build, NULL) >= 3);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_operation_comes_back_as_it_was_put_in),
		cmocka_unit_test(the_header_names_its_texts),
		cmocka_unit_test(what_is_sealed_cannot_be_changed),
		cmocka_unit_test(every_truncation_is_refused),
		cmocka_unit_test(every_flipped_field_is_refused_or_stays_inside),
		cmocka_unit_test(refuses_an_operation_that_lacks_what_it_needs),
		cmocka_unit_test(refuses_a_header_that_no_cell_could_start_from),
		cmocka_unit_test(the_first_failure_of_many_is_what_seal_tells),
		cmocka_unit_test(too_many_strings_are_refused_when_sealed),
		cmocka_unit_test(content_beyond_the_bound_is_refused_when_sealed),
		cmocka_unit_test(survives_a_lack_of_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
