/* mcp/connect/forgotten.h: what servers say of sessions that they do not know, and what only
 * sounds like it. */
#include "mcp/connect/forgotten.h"
#include "test.h"

#define RPC(message)                                                                               \
	"{\"jsonrpc\":\"2.0\",\"error\":{\"code\":-32000,\"message\":\"" message "\"},\"id\":null}"
#define ANSWER(message)                                                                            \
	"{\"jsonrpc\":\"2.0\",\"error\":{\"code\":-32000,\"message\":\"" message "\"},\"id\":7}"
#define LONG                                                                                       \
	"of the many things that may be said of a session there are some that take more than a "   \
	"sentence, and that is what it was: "

static const struct {
	int status;
	const char *text;
	bool forgotten;
} rows[] = {
	{ 404, "", true },
	{ 404, "<p>", true },
	{ 400, RPC("Bad Request: No valid session ID provided"), true },
	{ 400, RPC("Bad Request: No valid session ID or not an initialize request"), true },
	{ 400, RPC("Bad Request: Server not initialized"), true },
	{ 400, RPC("Invalid or missing session ID"), true },
	{ 400, RPC("Session not found"), true },
	{ 400, "{\"error\":\"Invalid or missing session ID\"}", true },
	{ 400, "{\"error\":{\"message\":\"session has expired\"}}", true },
	{ 400, "Invalid session ID\n", true },
	{ 400, "Mcp-Session-Id is not known", true },
	{ 400, "Unknown Mcp-Session-Id header", true },
	{ 400, "session ID does not exist", true },

	{ 200, RPC("Session not found"), false },
	{ 401, "Session not found", false },
	{ 400, "", false },
	{ 400, "{", false },
	{ 400, "{}", false },
	{ 400, "[]", false },
	{ 400, RPC("not so"), false },
	{ 400, RPC(""), false },
	{ 400, ANSWER("Session not found"), false },
	{ 400, RPC("too many sessions"), false },
	{ 400, RPC("the session takes one request at a time"), false },
	{ 400, RPC("a session may not be shared with another program that was not found"), false },
	{ 400, RPC("invalid arguments: name"), false },
	{ 400, "<p>Session not found</p>", false },
	{ 400, LONG LONG "session not found", false },
	{ 400, "{\"result\":\"session not found\"}", false },
};

static void test_rows(void **state)
{
	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		ROW_CHECK(mcp_is_forgotten(rows[i].status, str_of(rows[i].text)) ==
				  rows[i].forgotten,
			  rows[i].text);
}

/* Whatever the words are, they have their room. */
static void test_long_words(void **state)
{
	char text[200];

	for (size_t n = 0; n < sizeof(text); n++) {
		memset(text, 'a', sizeof(text));
		text[n] = ' ';
		assert_false(mcp_is_forgotten(400, (struct str){ text, sizeof(text) - n }));
		assert_false(mcp_is_forgotten(400, (struct str){ text, n }));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_rows),
		cmocka_unit_test(test_long_words),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
