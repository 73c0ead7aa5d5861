#include "modules/code/form.h"

enum { WORDS_MAX = 4096 };

/* In lower case, one blank between words. */
static const char *const secrets[] = {
	"password",	 "passwd",	    "passphrase",  "passcode",
	"secret",	 "token",	    "api key",	   "apikey",
	"access key",	 "private key",	    "secret key",  "credential",
	"credit card",	 "card number",	    "cvv",	   "cvc",
	"ssn",		 "social security", "seed phrase", "recovery code",
	"one time code", "security code",   "otp",	   "pin code",
};

static bool form_is_letter(char c)
{
	return (c | 0x20) >= 'a' && (c | 0x20) <= 'z';
}

/* "apiKey", "API_KEY" and "API key" are all " api key ". What is too long is cut. */
static void form_fold(struct str s, char to[WORDS_MAX + 4])
{
	size_t n = 0;
	char last = ' ';

	to[n++] = ' ';
	for (size_t i = 0; i < s.n && n < WORDS_MAX; i++) {
		char c = s.p[i];
		bool upper = c >= 'A' && c <= 'Z';

		if (!form_is_letter(c) || (upper && last >= 'a' && last <= 'z')) {
			if (to[n - 1] != ' ')
				to[n++] = ' ';
		}
		if (form_is_letter(c))
			to[n++] = (char)(c | 0x20);
		last = c;
	}
	to[n++] = ' ';
	to[n] = '\0';
}

/* A whole word, or its plural. */
static const char *form_find(struct str s)
{
	char text[WORDS_MAX + 4];

	form_fold(s, text);
	for (size_t i = 0; i < ARRAY_LEN(secrets); i++) {
		size_t n = strlen(secrets[i]);

		for (const char *at = text; (at = strstr(at, secrets[i])); at++) {
			const char *end = at + n + (at[n] == 's');

			if (at[-1] == ' ' && *end == ' ')
				return secrets[i];
		}
	}
	return NULL;
}

static bool form_takes_text(const struct json_val *property)
{
	return str_is(json_str(json_get(property, "type")), "string") &&
	       !json_get(property, "enum") && !json_get(property, "oneOf") &&
	       !json_get(property, "const");
}

const char *form_wants_secret(const struct json_val *params)
{
	const struct json_val *schema = json_get(params, "requestedSchema");
	struct json_iter it = json_iter(json_get(schema, "properties"));
	const char *found = NULL;
	bool any = false;

	while (!found && json_next(&it)) {
		if (!form_takes_text(it.val))
			continue;
		any = true;
		found = form_find(it.key)				     ?:
			form_find(json_str(json_get(it.val, "title")))	     ?:
			form_find(json_str(json_get(it.val, "description")));
	}
	return found || !any ? found : form_find(json_str(json_get(params, "message")));
}
