#include "policy/errors.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

void aw_policy_errors_add(struct aw_policy_errors *errors, const struct aw_policy_error *head,
			  const char *format, ...)
{
	struct aw_policy_error *item;
	va_list args;

	if (errors->count == AW_POLICY_ERRORS_MAX) {
		errors->dropped++;
		return;
	}
	item = realloc(errors->item, (errors->count + 1) * sizeof(*item));
	if (item == NULL) {
		errors->dropped++;
		return;
	}
	errors->item = item;
	item += errors->count++;
	*item = *head;
	va_start(args, format);
	(void)vsnprintf(item->message, sizeof(item->message), format, args);
	va_end(args);
}

void aw_policy_errors_fini(struct aw_policy_errors *errors)
{
	free(errors->item);
	*errors = (struct aw_policy_errors){ 0 };
}

static int print_one(const struct aw_policy_error *error, struct aw_buf *out)
{
	int r = aw_buf_printf(out, "%s:", error->file);

	if (r >= 0 && error->line > 0)
		r = aw_buf_printf(out, "%u:%u:", error->line, error->column);
	if (r >= 0)
		r = aw_buf_printf(out, " %s", error->message);
	if (r >= 0 && error->pointer[0] != '\0')
		r = aw_buf_printf(out, " (%s)", error->pointer);
	return r < 0 ? r : aw_buf_append_str(out, "\n");
}

int aw_policy_errors_print(const struct aw_policy_errors *errors, struct aw_buf *out)
{
	int r = 0;

	for (size_t i = 0; i < errors->count && r >= 0; i++)
		r = print_one(&errors->item[i], out);
	if (r >= 0 && errors->dropped > 0)
		r = aw_buf_printf(out, "and %zu more\n", errors->dropped);
	return r < 0 ? r : 0;
}
