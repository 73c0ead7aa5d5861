#include "net/egress/form.h"

#include "base/base64.h"

enum { JSON_SLASH = 1, JSON_HTML = 2 };

static int add_json(struct buf *to, struct str value, int how, struct err *e)
{
	for (size_t i = 0; i < value.n; i++) {
		char c = value.p[i];
		int rc;

		if (c == '"' || c == '\\' || (c == '/' && (how & JSON_SLASH)))
			rc = buf_addf(to, e, "\\%c", c);
		else if ((c == '<' || c == '>' || c == '&') && (how & JSON_HTML))
			rc = buf_addf(to, e, "\\u00%02x", (unsigned)c);
		else
			rc = buf_add(to, &c, 1, e);
		if (rc < 0)
			return -1;
	}
	return 0;
}

static int add_escaped(struct buf *to, struct str value, const char *digits, const char *plain,
		       struct err *e)
{
	for (size_t i = 0; i < value.n; i++) {
		char c = value.p[i];
		bool is_plain = (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') ||
				(c >= 'a' && c <= 'z') || (c && strchr(plain, c));

		if ((is_plain ? buf_add(to, &c, 1, e)
			      : buf_addf(to, e, "%%%c%c", digits[(unsigned char)c >> 4],
					 digits[(unsigned char)c & 15])) < 0)
			return -1;
	}
	return 0;
}

/* The characters that the value alone decides where it begins `shift` bytes into a group. */
static int add_base64(struct buf *to, struct str value, size_t shift, bool url, struct err *e)
{
	autowipe struct buf plain = BUF_INIT(value.n + 2), text = BUF_INIT(2 * value.n + 16);
	size_t skip = shift ? shift + 1 : 0;

	if (!buf_reserve(&plain, plain.max, e) || !buf_reserve(&text, text.max, e) ||
	    buf_add(&plain, "\0", shift, e) < 0 || buf_add(&plain, value.p, value.n, e) < 0 ||
	    (url ? base64url_encode(&text, buf_str(&plain), e)
		 : base64_encode(&text, buf_str(&plain), e)) < 0)
		return -1;
	return buf_add(to, text.p + skip, plain.n * 8 / 6 - skip, e);
}

int form_add(struct buf *to, struct str value, size_t i, struct err *e)
{
	static const char upper[] = "0123456789ABCDEF", lower[] = "0123456789abcdef";

	switch (i) {
	case 0:
		return buf_add(to, value.p, value.n, e);
	case 1:
	case 2:
	case 3:
	case 4:
		return add_json(to, value, (int)i - 1, e);
	case 5:
		return add_escaped(to, value, upper, "-._~", e);
	case 6:
		return add_escaped(to, value, lower, "-._~", e);
	case 7:
		return add_escaped(to, value, upper, "-._~!'()*", e);
	default:
		return add_base64(to, value, (i - 8) % 3, i >= 11, e);
	}
}
