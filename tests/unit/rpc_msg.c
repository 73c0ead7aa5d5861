/* rpc/rpc.h: what a message is, which errors it gets, and requests in flight. */
#include <stdlib.h>

#include "alloc_fail.h"
#include "rpc/inflight.h"
#include "rpc/rpc.h"
#include "test.h"

enum { NOTIFICATION = RPC_NOTIFICATION, REQUEST = RPC_REQUEST, RESPONSE = RPC_RESPONSE, FAULT = 9 };

static const struct {
	const char *text;
	int kind; /* FAULT: refused */
	const char *id; /* as it comes back; "" for none */
	enum rpc_code code;
	bool silent;
} messages[] = {
	{ "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"m\"}", REQUEST, "1", 0, false },
	{ "{\"jsonrpc\":\"2.0\",\"id\":\"a\",\"method\":\"m\",\"params\":{}}", REQUEST, "\"a\"", 0,
	  false },
	{ "{\"jsonrpc\":\"2.0\",\"id\":\"\",\"method\":\"\",\"params\":[]}", REQUEST, "\"\"", 0,
	  false },
	{ "{\"jsonrpc\":\"2.0\",\"id\":0,\"method\":\"m\",\"other\":1}", REQUEST, "0", 0, false },
	{ "{\"jsonrpc\":\"2.0\",\"id\":-9223372036854775808,\"method\":\"m\"}", REQUEST,
	  "-9223372036854775808", 0, false },
	{ "{\"jsonrpc\":\"2.0\",\"id\":9007199254740993,\"method\":\"m\"}", REQUEST,
	  "9007199254740993", 0, false },
	{ "{\"jsonrpc\":\"2.0\",\"id\":18446744073709551615,\"method\":\"m\"}", REQUEST,
	  "18446744073709551615", 0, false },
	{ "{\"jsonrpc\":\"2.0\",\"id\":\"\\u0061\\n\\\"\\u0000€\",\"method\":\"m\"}", REQUEST,
	  "\"a\\n\\\"\\u0000€\"", 0, false },
	{ "{\"jsonrpc\":\"2.0\",\"method\":\"m\"}", NOTIFICATION, "", 0, true },
	{ "{\"jsonrpc\":\"2.0\",\"id\":3,\"result\":{}}", RESPONSE, "3", 0, true },
	{ "{\"jsonrpc\":\"2.0\",\"id\":3,\"result\":null}", RESPONSE, "3", 0, true },
	{ "{\"jsonrpc\":\"2.0\",\"id\":\"x\",\"error\":{\"code\":1}}", RESPONSE, "\"x\"", 0, true },
	{ "{\"jsonrpc\":\"2.0\",\"id\":null,\"error\":{\"code\":1}}", RESPONSE, "", 0, true },
	{ "{\"jsonrpc\":\"2.0\",\"error\":{\"code\":1}}", RESPONSE, "", 0, true },
	/* as serialisers write them that know no absence, or no integers */
	{ "{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"m\",\"params\":null}", REQUEST, "7", 0,
	  false },
	{ "{\"jsonrpc\":\"2.0\",\"method\":\"m\",\"params\":null}", NOTIFICATION, "", 0, true },
	{ "{\"jsonrpc\":\"2.0\",\"id\":3,\"result\":{},\"error\":null,\"method\":null}", RESPONSE,
	  "3", 0, true },
	{ "{\"jsonrpc\":\"2.0\",\"id\":3,\"result\":null,\"error\":{\"code\":1}}", RESPONSE, "3", 0,
	  true },
	{ "{\"jsonrpc\":\"2.0\",\"id\":3.0,\"result\":{}}", RESPONSE, "3", 0, true },

	{ "1", FAULT, "", RPC_INVALID_REQUEST, false },
	{ "null", FAULT, "", RPC_INVALID_REQUEST, false },
	{ "{}", FAULT, "", RPC_INVALID_REQUEST, false },
	{ "{\"id\":7,\"method\":\"m\"}", FAULT, "7", RPC_INVALID_REQUEST, false },
	{ "{\"jsonrpc\":\"1.0\",\"id\":7,\"method\":\"m\"}", FAULT, "7", RPC_INVALID_REQUEST,
	  false },
	{ "{\"jsonrpc\":2.0,\"id\":7,\"method\":\"m\"}", FAULT, "7", RPC_INVALID_REQUEST, false },
	{ "{\"jsonrpc\":\"2.0\",\"id\":7}", FAULT, "7", RPC_INVALID_REQUEST, false },
	{ "{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":1}", FAULT, "7", RPC_INVALID_REQUEST, false },
	{ "{\"jsonrpc\":\"2.0\",\"method\":1,\"params\":\"bar\"}", FAULT, "", RPC_INVALID_REQUEST,
	  false },
	{ "{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"m\",\"params\":\"x\"}", FAULT, "7",
	  RPC_INVALID_REQUEST, false },
	{ "{\"jsonrpc\":\"2.0\",\"id\":null,\"method\":\"m\"}", FAULT, "", RPC_INVALID_REQUEST,
	  false },
	{ "{\"jsonrpc\":\"2.0\",\"id\":1.5,\"method\":\"m\"}", FAULT, "", RPC_INVALID_REQUEST,
	  false },
	{ "{\"jsonrpc\":\"2.0\",\"id\":1.0,\"method\":\"m\"}", FAULT, "", RPC_INVALID_REQUEST,
	  false },
	{ "{\"jsonrpc\":\"2.0\",\"id\":18446744073709551616,\"method\":\"m\"}", FAULT, "",
	  RPC_INVALID_REQUEST, false },
	{ "{\"jsonrpc\":\"2.0\",\"id\":{},\"method\":\"m\"}", FAULT, "", RPC_INVALID_REQUEST,
	  false },
	{ "{\"jsonrpc\":\"2.0\",\"id\":true,\"method\":\"m\"}", FAULT, "", RPC_INVALID_REQUEST,
	  false },
	{ "{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"m\",\"method\":\"n\"}", FAULT, "7",
	  RPC_INVALID_REQUEST, false },
	{ "{\"jsonrpc\":\"2.0\",\"id\":7,\"id\":8,\"method\":\"m\"}", FAULT, "",
	  RPC_INVALID_REQUEST, false },
	{ "{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"m\",\"params\":{\"a\":{\"b\":1,\"b\":1}}}",
	  FAULT, "7", RPC_INVALID_REQUEST, false },
	{ "{\"jsonrpc\":\"2.0\",\"method\":\"m\",\"params\":7}", FAULT, "", RPC_INVALID_REQUEST,
	  true },
	{ "{\"jsonrpc\":\"2.0\",\"method\":\"m\",\"params\":{\"a\":1,\"a\":1}}", FAULT, "",
	  RPC_INVALID_REQUEST, true },
	{ "{\"jsonrpc\":\"2.0\",\"id\":3,\"result\":1,\"error\":{}}", FAULT, "3",
	  RPC_INVALID_REQUEST, true },
	{ "{\"jsonrpc\":\"2.0\",\"id\":3.5,\"result\":1}", FAULT, "", RPC_INVALID_REQUEST, true },
	{ "{\"jsonrpc\":\"2.0\",\"id\":3,\"result\":null,\"error\":null,\"method\":null}", FAULT,
	  "3", RPC_INVALID_REQUEST, false },
	{ "{\"jsonrpc\":\"2.0\",\"result\":1}", FAULT, "", RPC_INVALID_REQUEST, true },
	{ "{\"jsonrpc\":\"2.0\",\"id\":3,\"error\":\"no\"}", FAULT, "3", RPC_INVALID_REQUEST,
	  true },
};

static void classifies(void **state)
{
	for (size_t i = 0; i < ARRAY_LEN(messages); i++) {
		const char *row = messages[i].text;
		struct rpc_fault f = { 0 };
		struct json_doc *got = NULL;
		struct rpc_msg m;
		struct rpc_id id;
		bool silent;
		int rc;

		ROW_CHECK(rpc_parse(str_of(row), NULL, &got, &f, &id) == 0, row);
		AUTO(json_free) struct json_doc *d = got;
		rc = rpc_read(json_root(d), &m, &f, &silent);
		ROW_CHECK((rc < 0) == (messages[i].kind == FAULT), row);
		ROW_CHECK(rc < 0 || (int)m.kind == messages[i].kind, row);
		ROW_CHECK(str_is(rpc_id_str(&m.id), messages[i].id), row);
		ROW_CHECK(rc == 0 || f.code == messages[i].code, row);
		ROW_CHECK(silent == messages[i].silent, row);
	}
}

static void bounds_ids(void **state)
{
	for (size_t n = 250; n < 260; n++) {
		struct rpc_id id;
		struct err e;
		char text[300];

		memset(text, 'x', sizeof(text));
		text[0] = text[n + 1] = '"';
		AUTO(json_free)
		struct json_doc *d = json_parse((struct str){ text, n + 2 }, NULL, &e);
		assert_int_equal(rpc_id_read(json_root(d), &id), n + 2 <= RPC_ID_MAX);
	}
}

static void tells_why_a_text_is_refused(void **state)
{
	static const struct {
		const char *text;
		struct json_options o;
		enum rpc_code code;
		const char *reason, *id;
	} rows[] = {
		{ "{", { 0 }, RPC_PARSE_ERROR, "not_json" },
		{ "\xff", { 0 }, RPC_PARSE_ERROR, "not_json" },
		{ "{\"id\":7,\"method\":\"m\",\"params\":{\"a\":\"\\ud800\"}}",
		  { 0 },
		  RPC_PARSE_ERROR,
		  "not_json",
		  "7" },
		{ "{\"id\":7,\"method\":\"\xff\"}", { 0 }, RPC_PARSE_ERROR, "not_json", "7" },
		{ "{\"id\":7,\"result\":\"\xff\"}", { 0 }, RPC_PARSE_ERROR, "not_json" },
		{ "[[[]]]", { .depth = 2 }, RPC_INVALID_REQUEST, "too_large" },
		{ "[1,2,3]", { .values = 3 }, RPC_INVALID_REQUEST, "too_large" },
		{ "[1,2,3]", { .bytes = 3 }, RPC_INVALID_REQUEST, "too_large" },
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct rpc_fault f;
		struct rpc_id id;
		struct json_doc *d = NULL;

		ROW_CHECK(rpc_parse(str_of(rows[i].text), &rows[i].o, &d, &f, &id) == -1,
			  rows[i].text);
		ROW_CHECK(f.code == rows[i].code, rows[i].text);
		ROW_CHECK(str_is(str_of(f.reason ? f.reason->name : ""),
				 rows[i].reason ? rows[i].reason : ""),
			  rows[i].text);
		ROW_CHECK(str_is(rpc_id_str(&id), rows[i].id ? rows[i].id : ""), rows[i].text);
	}
}

static void survives_want_of_memory(void **state)
{
	static const char text[] = "{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"m\"}";

	for (unsigned n = 0; alloc_fail_next(&n);) {
		struct rpc_fault f = { 0 };
		struct rpc_id id;
		struct json_doc *d = NULL;

		if (rpc_parse(str_of(text), NULL, &d, &f, &id) < 0) {
			assert_int_equal(f.code, RPC_INTERNAL_ERROR);
			assert_string_equal(f.reason->name, "limit_exceeded");
		}
		json_free(d);
	}
}

static void writes_messages(void **state)
{
	autobuf struct buf b = BUF_INIT(1024);
	struct json_writer w = json_writer(&b);
	struct rpc_id id = { 2, "42" };
	struct rpc_fault f;
	struct err e;

	json_write_array(&w);
	rpc_write_result(&w, &id);
	json_write_object(&w);
	json_write_object_end(&w);
	rpc_write_end(&w);
	rpc_write_notification(&w, "n/x");
	json_write_array(&w);
	json_write_array_end(&w);
	rpc_write_end(&w);
	rpc_fault_set(&f, RPC_PARSE_ERROR, "broken \xff \"%d\"", 7);
	f.reason = &(struct err_info){ .name = "not_json",
				       .remediation = "mend it",
				       .failure = FAILURE_VALIDATION,
				       .retryable = true };
	snprintf(f.data, sizeof(f.data), "{\"uri\":7}");
	rpc_write_fault(&w, NULL, &f);
	f.reason = NULL;
	rpc_write_fault(&w, &id, &f);
	json_write_array_end(&w);
	assert_int_equal(json_write_done(&w, &e), 0);
	assert_string_equal(b.p, "[{\"jsonrpc\":\"2.0\",\"id\":42,\"result\":{}},"
				 "{\"jsonrpc\":\"2.0\",\"method\":\"n/x\",\"params\":[]},"
				 "{\"jsonrpc\":\"2.0\",\"error\":{\"code\":-32700,"
				 "\"message\":\"broken � \\\"7\\\"\",\"data\":{"
				 "\"code\":\"not_json\","
				 "\"cause\":\"broken � \\\"7\\\"\",\"remediation\":\"mend it\","
				 "\"failure\":\"validation_failed\",\"retryable\":true,"
				 "\"uri\":7}}},"
				 "{\"jsonrpc\":\"2.0\",\"id\":42,\"error\":{\"code\":-32700,"
				 "\"message\":\"broken � \\\"7\\\"\",\"data\":{\"uri\":7}}}]");
}

static void set_id(struct rpc_id *id, int i)
{
	id->n = (unsigned short)snprintf(id->json, sizeof(id->json), "%d", i);
}

static void lists_requests_in_flight(void **state)
{
	enum { N = 200 };
	AUTO(inflight_free) struct inflight *t = inflight_new(N);
	static struct inflight_entry entries[N + 1];
	struct rpc_fault f = { 0 };
	struct rpc_id id;
	int seen = 0;

	assert_non_null(t);
	assert_null(inflight_first(t));
	for (int i = 0; i < N; i++) {
		set_id(&id, i);
		assert_int_equal(inflight_add(t, &entries[i], &id, &f), 0);
		assert_int_equal(inflight_add(t, &entries[N], &id, &f), -1);
		assert_int_equal(f.code, RPC_INVALID_REQUEST);
	}
	set_id(&id, N);
	assert_int_equal(inflight_add(t, &entries[N], &id, &f), -1);
	assert_int_equal(f.code, RPC_INTERNAL_ERROR);
	assert_string_equal(f.reason->name, "limit_exceeded");
	assert_null(inflight_find(t, &id));
	assert_int_equal(inflight_count(t), N);
	for (int i = 0; i < N; i += 2)
		inflight_remove(t, &entries[i]);
	for (struct inflight_entry *x = inflight_first(t); x; x = x->newer)
		assert_ptr_equal(x, &entries[2 * seen++ + 1]);
	assert_int_equal(seen, N / 2);
	for (int i = 0; i < N; i++) {
		set_id(&id, i);
		assert_ptr_equal(inflight_find(t, &id), i % 2 ? &entries[i] : NULL);
	}
	for (int i = N - 1; i > 0; i -= 2)
		inflight_remove(t, &entries[i]);
	assert_int_equal(inflight_count(t), 0);
	assert_null(inflight_first(t));
	set_id(&id, 7);
	id.n = (unsigned short)snprintf(id.json, sizeof(id.json), "\"7\"");
	assert_int_equal(inflight_add(t, &entries[0], &id, &f), 0);
	set_id(&id, 7);
	assert_null(inflight_find(t, &id)); /* "7" is not 7 */
	inflight_remove(t, &entries[0]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(classifies),
		cmocka_unit_test(bounds_ids),
		cmocka_unit_test(tells_why_a_text_is_refused),
		cmocka_unit_test(survives_want_of_memory),
		cmocka_unit_test(writes_messages),
		cmocka_unit_test(lists_requests_in_flight),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
