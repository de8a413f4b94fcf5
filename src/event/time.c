#include "event/time.h"

#include <errno.h>
#include <string.h>

#define NS 1000000000U
#define DAY 86400U

/*
 * The proleptic Gregorian calendar in whole 400-year eras of 146097 days, with years that begin in
 * March so that the leap day is the last one. 719468 days lie between 0000-03-01 and 1970-01-01.
 */
static void date_of_day(uint64_t day, unsigned *ret_year, unsigned *ret_month, unsigned *ret_mday)
{
	uint64_t z = day + 719468, era = z / 146097, in_era = z % 146097;
	uint64_t year_of_era = (in_era - in_era / 1460 + in_era / 36524 - in_era / 146096) / 365;
	uint64_t in_year = in_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
	uint64_t month = (5 * in_year + 2) / 153;

	*ret_mday = (unsigned)(in_year - (153 * month + 2) / 5 + 1);
	*ret_month = (unsigned)(month < 10 ? month + 3 : month - 9);
	*ret_year = (unsigned)(era * 400 + year_of_era + (month < 10 ? 0 : 1));
}

static uint64_t day_of_date(uint64_t year, uint64_t month, uint64_t mday)
{
	uint64_t y = month > 2 ? year : year - 1, era = y / 400, in_era = y % 400;
	uint64_t in_year = (153 * (month > 2 ? month - 3 : month + 9) + 2) / 5 + mday - 1;

	return era * 146097 + in_era * 365 + in_era / 4 - in_era / 100 + in_year - 719468;
}

static void put_digits(char *out, size_t count, uint64_t value)
{
	for (size_t i = count; i-- > 0; value /= 10)
		out[i] = (char)('0' + value % 10);
}

void aw_time_format(uint64_t wall_ns, char out[AW_TIME_LEN + 1])
{
	uint64_t seconds = wall_ns / NS, in_day = seconds % DAY;
	unsigned year, month, mday;

	date_of_day(seconds / DAY, &year, &month, &mday);
	memcpy(out, "0000-00-00T00:00:00.000000000Z", AW_TIME_LEN + 1);
	put_digits(out, 4, year);
	put_digits(out + 5, 2, month);
	put_digits(out + 8, 2, mday);
	put_digits(out + 11, 2, in_day / 3600);
	put_digits(out + 14, 2, in_day / 60 % 60);
	put_digits(out + 17, 2, in_day % 60);
	put_digits(out + 20, 9, wall_ns % NS);
}

static uint64_t get_digits(const char *text, size_t count)
{
	uint64_t value = 0;

	for (size_t i = 0; i < count; i++)
		value = value * 10 + (uint64_t)(text[i] - '0');
	return value;
}

static bool has_form(struct aw_str text)
{
	static const char form[] = "0000-00-00T00:00:00.000000000Z";

	if (text.len != AW_TIME_LEN)
		return false;
	for (size_t i = 0; i < AW_TIME_LEN; i++) {
		bool is_digit = text.ptr[i] >= '0' && text.ptr[i] <= '9';

		if (form[i] == '0' ? !is_digit : text.ptr[i] != form[i])
			return false;
	}
	return true;
}

int aw_time_parse(struct aw_str text, uint64_t *ret_ns)
{
	char again[AW_TIME_LEN + 1];
	uint64_t year, month, mday, seconds, ns;

	if (!has_form(text))
		return -EBADMSG;
	year = get_digits(text.ptr, 4);
	month = get_digits(text.ptr + 5, 2);
	mday = get_digits(text.ptr + 8, 2);
	if (year < 1970 || year > 2553 || month < 1 || month > 12 || mday < 1 || mday > 31)
		return -EBADMSG;
	seconds = day_of_date(year, month, mday) * DAY + get_digits(text.ptr + 11, 2) * 3600 +
		  get_digits(text.ptr + 14, 2) * 60 + get_digits(text.ptr + 17, 2);
	ns = seconds * NS + get_digits(text.ptr + 20, 9);
	/* February 30, 24:00 and the like come back as another date. */
	aw_time_format(ns, again);
	if (memcmp(again, text.ptr, AW_TIME_LEN) != 0)
		return -EBADMSG;
	*ret_ns = ns;
	return 0;
}
