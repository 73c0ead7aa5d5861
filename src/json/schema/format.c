/* Formats, by hand-written scanners. Each scanner consumes what it recognises from the front of a
 * text. */
#include "json/schema/format.h"

#include <arpa/inet.h>

#include "json/schema/regex.h"

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

static bool is_alpha(char c)
{
	c = (char)(c | 0x20);
	return c >= 'a' && c <= 'z';
}

static bool is_hex(char c)
{
	return is_digit(c) || (is_alpha(c) && (c | 0x20) <= 'f');
}

static bool among(char c, const char *any)
{
	return c && strchr(any, c);
}

static char front(struct str s)
{
	return s.n > 0 ? s.p[0] : '\0';
}

static bool format_take(struct str *s, char c)
{
	if (s->n == 0 || s->p[0] != c)
		return false;
	s->p++;
	s->n--;
	return true;
}

/* Exactly n digits. */
static bool take_digits(struct str *s, int n, int *ret)
{
	int v = 0;

	for (int i = 0; i < n; i++) {
		char c = front(*s);

		if (!is_digit(c))
			return false;
		format_take(s, c);
		v = v * 10 + (c - '0');
	}
	*ret = v;
	return true;
}

/* One digit or more. */
static bool skip_digits(struct str *s)
{
	size_t n = s->n;

	while (is_digit(front(*s)))
		format_take(s, front(*s));
	return s->n < n;
}

/* The part before c, or the whole text. */
static struct str take_until(struct str *s, char c)
{
	const char *at = s->n ? memchr(s->p, c, s->n) : NULL;
	struct str before = *s;

	if (at)
		before.n = (size_t)(at - s->p);
	s->p += before.n;
	s->n -= before.n;
	return before;
}

/* --- dates: RFC 3339 --------------------------------------------------------------------- */

static bool take_date(struct str *s)
{
	static const int days[] = { 31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31 };
	int y, m, d;

	if (!take_digits(s, 4, &y) || !format_take(s, '-') || !take_digits(s, 2, &m) ||
	    !format_take(s, '-') || !take_digits(s, 2, &d))
		return false;
	if (m < 1 || m > 12 || d < 1 || d > days[m - 1])
		return false;
	return m != 2 || d < 29 || (y % 4 == 0 && (y % 100 != 0 || y % 400 == 0));
}

static bool take_time(struct str *s)
{
	int h, m, sec, oh = 0, om = 0, minute;
	bool minus;

	if (!take_digits(s, 2, &h) || !format_take(s, ':') || !take_digits(s, 2, &m) ||
	    !format_take(s, ':') || !take_digits(s, 2, &sec) || h > 23 || m > 59 || sec > 60)
		return false;
	if (format_take(s, '.') && !skip_digits(s))
		return false;
	minus = front(*s) == '-';
	if (!format_take(s, 'Z') && !format_take(s, 'z')) {
		if ((!format_take(s, '+') && !format_take(s, '-')) || !take_digits(s, 2, &oh) ||
		    !format_take(s, ':') || !take_digits(s, 2, &om) || oh > 23 || om > 59)
			return false;
	}
	/* a leap second ends a day of UTC */
	minute = h * 60 + m + (minus ? 1 : -1) * (oh * 60 + om);
	return sec < 60 || (minute + 2 * 1440) % 1440 == 1439;
}

static bool is_date(struct str s)
{
	return take_date(&s) && s.n == 0;
}

static bool is_time(struct str s)
{
	return take_time(&s) && s.n == 0;
}

static bool is_date_time(struct str s)
{
	return take_date(&s) && (format_take(&s, 'T') || format_take(&s, 't')) && take_time(&s) &&
	       s.n == 0;
}

/* 1Y2M3D: units in their order, without a gap between two. */
static bool take_units(struct str *s, const char *units)
{
	const char *next = NULL;

	while (is_digit(front(*s))) {
		const char *at;

		skip_digits(s);
		at = among(front(*s), units) ? strchr(units, front(*s)) : NULL;
		if (!at || (next && at != next))
			return false;
		next = at + 1;
		format_take(s, *at);
	}
	return next;
}

static bool is_duration(struct str s)
{
	bool date;

	if (!format_take(&s, 'P'))
		return false;
	if (s.n > 1 && s.p[s.n - 1] == 'W')
		return skip_digits(&s) && s.n == 1;
	date = front(s) != 'T';
	if (date && !take_units(&s, "YMD"))
		return false;
	if (s.n == 0)
		return date;
	return format_take(&s, 'T') && take_units(&s, "HMS") && s.n == 0;
}

/* --- hosts and addresses ----------------------------------------------------------------- */

static bool is_label(struct str s)
{
	if (s.n == 0 || s.n > 63 || s.p[0] == '-' || s.p[s.n - 1] == '-')
		return false;
	if (s.n >= 4 && s.p[2] == '-' && s.p[3] == '-' && strncasecmp(s.p, "xn", 2) != 0)
		return false;
	for (size_t i = 0; i < s.n; i++) {
		if (!is_alpha(s.p[i]) && !is_digit(s.p[i]) && s.p[i] != '-')
			return false;
	}
	return true;
}

/* RFC 1123 */
static bool is_hostname(struct str s)
{
	if (s.n > 253)
		return false;
	do {
		if (!is_label(take_until(&s, '.')))
			return false;
	} while (format_take(&s, '.'));
	return true;
}

static bool is_ipv4(struct str s)
{
	for (int i = 0; i < 4; i++) {
		size_t digits = 0;
		int v = 0;

		if (i > 0 && !format_take(&s, '.'))
			return false;
		if (front(s) == '0' && s.n > 1 && is_digit(s.p[1]))
			return false;
		for (; is_digit(front(s)) && digits < 4; digits++) {
			v = v * 10 + (front(s) - '0');
			format_take(&s, front(s));
		}
		if (digits == 0 || v > 255)
			return false;
	}
	return s.n == 0;
}

static bool is_ipv6(struct str s)
{
	unsigned char address[16];
	char text[INET6_ADDRSTRLEN];

	if (s.n >= sizeof(text) || (s.n && memchr(s.p, '\0', s.n)))
		return false;
	if (s.n)
		memcpy(text, s.p, s.n);
	text[s.n] = '\0';
	return inet_pton(AF_INET6, text, address) == 1;
}

/* s begins after the opening quote. */
static bool take_quoted(struct str *s)
{
	for (; s->n > 0; format_take(s, front(*s))) {
		if (format_take(s, '"'))
			return true;
		if (format_take(s, '\\') && s->n == 0)
			return false;
	}
	return false;
}

static bool take_atoms(struct str *s)
{
	do {
		size_t n = s->n;

		while (is_alpha(front(*s)) || is_digit(front(*s)) ||
		       among(front(*s), "!#$%&'*+-/=?^_`{|}~"))
			format_take(s, front(*s));
		if (s->n == n)
			return false;
	} while (format_take(s, '.'));
	return true;
}

/* RFC 5321 §4.1.2 */
static bool is_email(struct str s)
{
	if (!(format_take(&s, '"') ? take_quoted(&s) : take_atoms(&s)) || !format_take(&s, '@'))
		return false;
	if (!format_take(&s, '['))
		return is_hostname(s);
	if (s.n == 0 || s.p[s.n - 1] != ']')
		return false;
	s.n--;
	if (s.n > 5 && strncasecmp(s.p, "IPv6:", 5) == 0)
		return is_ipv6((struct str){ s.p + 5, s.n - 5 });
	return is_ipv4(s);
}

/* --- URIs: RFC 3986, RFC 3987 ------------------------------------------------------------ */

enum { IN_AUTHORITY, IN_PATH, IN_QUERY, IN_FRAGMENT };

/* Consumes characters of one part. more: those allowed besides the unreserved characters and the
 * sub-delims. */
static bool skip_chars(struct str *s, const char *more, bool iri)
{
	for (; s->n > 0; format_take(s, front(*s))) {
		char c = front(*s);

		if (is_alpha(c) || is_digit(c) || among(c, "-._~!$&'()*+,;=") || among(c, more) ||
		    (iri && (c & 0x80)))
			continue;
		if (c != '%')
			return true;
		if (s->n < 3 || !is_hex(s->p[1]) || !is_hex(s->p[2]))
			return false;
	}
	return true;
}

static bool take_authority(struct str *s, bool iri)
{
	struct str user = *s;

	if (!skip_chars(&user, ":", iri))
		return false;
	if (front(user) == '@') {
		*s = user;
		format_take(s, '@');
	}
	if (format_take(s, '[')) {
		struct str address = take_until(s, ']');

		if (front(address) == 'v' || front(address) == 'V') {
			if (!skip_chars(&address, ":", false) || address.n > 0)
				return false;
		} else if (!is_ipv6(address)) {
			return false;
		}
		if (!format_take(s, ']'))
			return false;
	} else if (!skip_chars(s, "", iri)) {
		return false;
	}
	if (format_take(s, ':'))
		skip_digits(s);
	return s->n == 0 || among(front(*s), "/?#");
}

static bool take_scheme(struct str *s)
{
	struct str rest = *s, scheme = take_until(&rest, ':');

	if (front(rest) != ':' || !is_alpha(front(scheme)))
		return false;
	for (size_t i = 0; i < scheme.n; i++) {
		if (!is_alpha(scheme.p[i]) && !is_digit(scheme.p[i]) && !among(scheme.p[i], "+-."))
			return false;
	}
	format_take(&rest, ':');
	*s = rest;
	return true;
}

static bool is_reference(struct str s, bool absolute, bool iri)
{
	bool scheme = take_scheme(&s);

	if (absolute && !scheme)
		return false;
	if (s.n >= 2 && s.p[0] == '/' && s.p[1] == '/') {
		format_take(&s, '/');
		format_take(&s, '/');
		if (!take_authority(&s, iri))
			return false;
	} else if (!scheme) {
		/* a colon in the first segment would make it a scheme */
		if (!skip_chars(&s, "@", iri) || front(s) == ':')
			return false;
	}
	if (!skip_chars(&s, ":@/", iri))
		return false;
	if (format_take(&s, '?') && !skip_chars(&s, ":@/?", iri))
		return false;
	if (format_take(&s, '#') && !skip_chars(&s, ":@/?", iri))
		return false;
	return s.n == 0;
}

static bool is_uri(struct str s)
{
	return is_reference(s, true, false);
}

static bool is_uri_reference(struct str s)
{
	return is_reference(s, false, false);
}

static bool is_iri(struct str s)
{
	return is_reference(s, true, true);
}

static bool is_iri_reference(struct str s)
{
	return is_reference(s, false, true);
}

/* One variable of an expression: a name such as a.b, optionally followed by :4 (up to :9999) or
 * *. */
static bool take_variable(struct str *s)
{
	size_t n;

	do {
		n = s->n;
		while (is_alpha(front(*s)) || is_digit(front(*s)) || among(front(*s), "_%"))
			format_take(s, front(*s));
		if (s->n == n)
			return false;
	} while (format_take(s, '.'));
	if (!format_take(s, ':'))
		return format_take(s, '*') || true;
	n = s->n;
	return front(*s) != '0' && skip_digits(s) && n - s->n <= 4;
}

/* RFC 6570 */
static bool is_uri_template(struct str s)
{
	while (s.n > 0) {
		char c = front(s);

		format_take(&s, c);
		if (c == '}' || c == ' ' || c == '"' || c == '<' || c == '>' || c == '\\' ||
		    c == '^' || c == '`' || c == '|' || c == 0x7f || (unsigned char)c < ' ')
			return false;
		if (c != '{')
			continue;
		if (among(front(s), "+#./;?&=,!@|"))
			format_take(&s, front(s));
		do {
			if (!take_variable(&s))
				return false;
		} while (format_take(&s, ','));
		if (!format_take(&s, '}'))
			return false;
	}
	return true;
}

/* --- others ------------------------------------------------------------------------------ */

/* RFC 4122 */
static bool is_uuid(struct str s)
{
	if (s.n != 36)
		return false;
	for (size_t i = 0; i < s.n; i++) {
		bool dash = i == 8 || i == 13 || i == 18 || i == 23;

		if (dash ? s.p[i] != '-' : !is_hex(s.p[i]))
			return false;
	}
	return true;
}

/* RFC 6901 */
static bool is_json_pointer(struct str s)
{
	if (s.n > 0 && s.p[0] != '/')
		return false;
	for (size_t i = 0; i < s.n; i++) {
		if (s.p[i] == '~' && (i + 1 == s.n || !among(s.p[i + 1], "01")))
			return false;
	}
	return true;
}

static bool is_relative_json_pointer(struct str s)
{
	if (s.n > 1 && s.p[0] == '0' && is_digit(s.p[1]))
		return false;
	if (!skip_digits(&s))
		return false;
	return str_is(s, "#") || is_json_pointer(s);
}

static bool is_regex(struct str s)
{
	struct err ignored;
	AUTO(regex_free) struct regex *r = regex_new(s, &ignored);

	return r;
}

static const struct schema_format formats[] = {
	{ "date", is_date },
	{ "time", is_time },
	{ "date-time", is_date_time },
	{ "duration", is_duration },
	{ "email", is_email },
	{ "hostname", is_hostname },
	{ "ipv4", is_ipv4 },
	{ "ipv6", is_ipv6 },
	{ "uri", is_uri },
	{ "uri-reference", is_uri_reference },
	{ "iri", is_iri },
	{ "iri-reference", is_iri_reference },
	{ "uri-template", is_uri_template },
	{ "uuid", is_uuid },
	{ "json-pointer", is_json_pointer },
	{ "relative-json-pointer", is_relative_json_pointer },
	{ "regex", is_regex },
};

const struct schema_format *schema_format(struct str name)
{
	for (size_t i = 0; i < ARRAY_LEN(formats); i++) {
		if (str_is(name, formats[i].name))
			return &formats[i];
	}
	return NULL;
}
