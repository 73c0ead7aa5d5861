#include "net/egress/head.h"

bool head_is_digit(char c)
{
	return c >= '0' && c <= '9';
}

char head_lower(char c)
{
	return c >= 'A' && c <= 'Z' ? (char)(c + 32) : c;
}

bool head_is_token(struct str s)
{
	for (size_t i = 0; i < s.n; i++) {
		char c = s.p[i];

		if (!head_is_digit(c) && !(head_lower(c) >= 'a' && head_lower(c) <= 'z') &&
		    !(c && strchr("!#$%&'*+-.^_`|~", c)))
			return false;
	}
	return s.n > 0;
}

bool head_is(struct str a, const char *z)
{
	size_t n = strlen(z);

	if (a.n != n)
		return false;
	for (size_t i = 0; i < n; i++) {
		if (head_lower(a.p[i]) != z[i])
			return false;
	}
	return true;
}

bool head_is_to_cgi(struct str a, const char *z)
{
	size_t n = strlen(z);

	if (a.n != n)
		return false;
	for (size_t i = 0; i < n; i++) {
		if ((a.p[i] == '_' ? '-' : head_lower(a.p[i])) != z[i])
			return false;
	}
	return true;
}

bool head_cut(struct str *s, char c, struct str *ret)
{
	const char *at = s->n > 0 ? memchr(s->p, c, s->n) : NULL;

	if (!at)
		return false;
	*ret = (struct str){ s->p, (size_t)(at - s->p) };
	s->n -= ret->n + 1;
	s->p = at + 1;
	return true;
}

bool head_line(struct str *s, struct str *ret)
{
	return head_cut(s, '\n', ret) && ret->n > 0 && ret->p[--ret->n] == '\r';
}

bool head_item(struct str *list, struct str *ret)
{
	if (!list->p)
		return false;
	if (!head_cut(list, ',', ret)) {
		*ret = *list;
		*list = STR_NONE;
	}
	*ret = str_trim(*ret);
	return true;
}

const char *head_field(struct str *fields, struct str *ret_name, struct str *ret_value)
{
	struct str line;

	if (!head_line(fields, &line) || !head_cut(&line, ':', ret_name) || ret_name->n == 0)
		return "a line is no field";
	if (!head_is_token(*ret_name))
		return "a field's name is no token";
	*ret_value = str_trim(line);
	for (size_t i = 0; i < ret_value->n; i++) {
		unsigned char c = (unsigned char)ret_value->p[i];

		if ((c < 0x20 && c != '\t') || c == 0x7f)
			return "a field has a control character";
	}
	return NULL;
}

bool head_length(struct str value, uint64_t *ret)
{
	*ret = 0;
	if (value.n == 0 || value.n > 18)
		return false;
	for (size_t i = 0; i < value.n; i++) {
		if (!head_is_digit(value.p[i]))
			return false;
		*ret = *ret * 10 + (unsigned)(value.p[i] - '0');
	}
	return true;
}

size_t head_end(struct str s, size_t *scanned, bool *bad)
{
	size_t i = *scanned;

	*bad = false;
	for (; i < s.n; i++) {
		if (s.p[i] != '\n')
			continue;
		*bad = i == 0 || s.p[i - 1] != '\r' || i == 1;
		if (*bad)
			return 0;
		if (i >= 3 && s.p[i - 2] == '\n')
			return i + 1;
	}
	*scanned = i;
	return 0;
}
