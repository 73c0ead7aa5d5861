#include "rpc/rpc.h"

#include <stdio.h>

#include "base/failure.h"
#include "rpc/sniff.h"

/* JSON copies such a string unchanged, so it needs no writer. Most ids are of this kind. */
static bool is_plain(struct str s)
{
	for (size_t i = 0; i < s.n; i++) {
		unsigned char c = (unsigned char)s.p[i];

		if (c < 0x20 || c > 0x7e || c == '"' || c == '\\')
			return false;
	}
	return true;
}

static bool read_string(struct str s, struct rpc_id *ret)
{
	autobuf struct buf b = BUF_INIT(RPC_ID_MAX);
	struct json_writer w = json_writer(&b);
	struct err e;

	if (is_plain(s) && s.n + 2 <= RPC_ID_MAX) {
		ret->json[0] = '"';
		if (s.n > 0)
			memcpy(ret->json + 1, s.p, s.n);
		ret->json[s.n + 1] = '"';
		ret->n = (unsigned short)(s.n + 2);
		return true;
	}
	json_write_str(&w, s);
	if (json_write_done(&w, &e) < 0)
		return false;
	memcpy(ret->json, b.p, b.n);
	ret->n = (unsigned short)b.n;
	return true;
}

size_t rpc_put_uint(char to[RPC_DIGITS], uint64_t u)
{
	char digits[RPC_DIGITS];
	size_t n = 0;

	do {
		digits[n++] = (char)('0' + u % 10);
		u /= 10;
	} while (u > 0);
	for (size_t i = 0; i < n; i++)
		to[i] = digits[n - 1 - i];
	return n;
}

static void read_integer(uint64_t magnitude, bool negative, struct rpc_id *ret)
{
	ret->json[0] = '-';
	ret->n = (unsigned short)(negative + rpc_put_uint(ret->json + negative, magnitude));
}

bool rpc_id_read(const struct json_val *v, struct rpc_id *ret)
{
	int64_t i;
	uint64_t u;

	ret->n = 0;
	if (json_type(v) == JSON_STR)
		return read_string(json_str(v), ret);
	if (json_type(v) != JSON_INT)
		return false;
	if (json_int64(v, &i))
		read_integer(i < 0 ? -(uint64_t)i : (uint64_t)i, i < 0, ret);
	else if (json_uint64(v, &u))
		read_integer(u, false, ret);
	return ret->n > 0;
}

/* The failure that a code of JSON-RPC itself stands for; NULL: the code is of a protocol above. */
static const struct err_info *rpc_reason(int code)
{
	switch (code) {
	case RPC_PARSE_ERROR:
		return err_info(ERR_NOT_JSON);
	case RPC_INVALID_REQUEST:
		return err_info(ERR_MESSAGE);
	case RPC_METHOD_NOT_FOUND:
		return err_info(ERR_NO_METHOD);
	case RPC_INVALID_PARAMS:
		return err_info(ERR_INVALID);
	case RPC_INTERNAL_ERROR:
		return err_info(ERR_IO);
	default:
		return NULL;
	}
}

int rpc_fault_set(struct rpc_fault *f, int code, const char *fmt, ...)
{
	va_list ap;

	f->code = code;
	f->status = 0;
	f->reason = rpc_reason(code);
	f->data[0] = '\0';
	va_start(ap, fmt);
	vsnprintf(f->message, sizeof(f->message), fmt, ap);
	va_end(ap);
	return -1;
}

/* Finds the id in a text that could not be parsed. */
static void sniff_id(struct str text, struct rpc_id *ret)
{
	struct rpc_sniff sniff = { 0 };

	rpc_sniff_feed(&sniff, text);
	rpc_sniff_id(&sniff, ret);
}

int rpc_parse(struct str text, const struct json_options *o, struct json_doc **ret,
	      struct rpc_fault *ret_fault, struct rpc_id *ret_id)
{
	struct json_options options = o ? *o : (struct json_options){ 0 };
	struct json_doc *d;
	struct err e;

	ret_id->n = 0;
	options.keys_unchecked = true;
	d = json_parse(text, &options, &e);
	if (d) {
		*ret = d;
		return 0;
	}
	sniff_id(text, ret_id);
	if (e.code == ERR_INVALID)
		return rpc_fault_set(ret_fault, RPC_PARSE_ERROR, "%s", e.msg);
	rpc_fault_set(ret_fault, e.code == ERR_TOO_LARGE ? RPC_INVALID_REQUEST : RPC_INTERNAL_ERROR,
		      "%s", e.msg);
	ret_fault->reason = err_info(e.code);
	return -1;
}

static size_t count_of(const struct json_val *v, const char *key)
{
	struct json_iter it = json_iter(v);
	size_t n = 0;

	while (json_next(&it))
		n += str_is(it.key, key);
	return n;
}

static int check_keys(const struct json_val *v, struct rpc_msg *m, struct rpc_fault *f)
{
	struct err e;

	if (json_check_keys(v, &e) == 0)
		return 0;
	if (count_of(v, "id") > 1)
		m->id.n = 0;
	if (e.code == ERR_LIMIT) {
		rpc_fault_set(f, RPC_INTERNAL_ERROR, "%s", e.msg);
		f->reason = err_info(e.code);
		return -1;
	}
	return rpc_fault_set(f, RPC_INVALID_REQUEST, "%s", e.msg);
}

/* Indexes of a message's members; an absent member is NULL. */
enum { JSONRPC, ID, METHOD, PARAMS, RESULT, ERROR, MEMBERS };

static const struct str member_names[MEMBERS] = {
	[JSONRPC] = STR_LIT("jsonrpc"), [ID] = STR_LIT("id"),	      [METHOD] = STR_LIT("method"),
	[PARAMS] = STR_LIT("params"),	[RESULT] = STR_LIT("result"), [ERROR] = STR_LIT("error"),
};

static int read_call(const struct json_val *const has[MEMBERS], struct rpc_msg *m,
		     struct rpc_fault *f)
{
	enum json_type type = json_type(has[METHOD]);

	m->method = json_str(has[METHOD]);
	if (type != JSON_STR)
		return rpc_fault_set(f, RPC_INVALID_REQUEST, "method takes a string, not %s",
				     json_type_name(type));
	if (has[ID] && m->id.n == 0)
		return rpc_fault_set(f, RPC_INVALID_REQUEST,
				     "id takes a string or an integer of at most %d bytes",
				     RPC_ID_MAX);
	m->params = has[PARAMS];
	type = json_type(m->params);
	if (type != JSON_ABSENT && type != JSON_OBJECT && type != JSON_ARRAY)
		return rpc_fault_set(f, RPC_INVALID_REQUEST, "params takes an object, not %s",
				     json_type_name(type));
	return 0;
}

static int read_response(const struct json_val *const has[MEMBERS], struct rpc_msg *m,
			 struct rpc_fault *f)
{
	m->result = has[RESULT];
	m->error = has[ERROR];
	if (m->result && m->error)
		return rpc_fault_set(f, RPC_INVALID_REQUEST, "both result and error");
	if (m->id.n == 0 && (m->result || (has[ID] && json_type(has[ID]) != JSON_NULL)))
		return rpc_fault_set(f, RPC_INVALID_REQUEST, "a response without an id");
	if (m->error && json_type(m->error) != JSON_OBJECT)
		return rpc_fault_set(f, RPC_INVALID_REQUEST, "error takes an object");
	return 0;
}

/* Serialisers that know one kind of message write null for the members of the others. */
static void drop_nulls(const struct json_val *has[MEMBERS])
{
	static const int others[] = { METHOD, PARAMS, RESULT, ERROR };
	bool answers = (has[RESULT] && json_type(has[RESULT]) != JSON_NULL) ||
		       (has[ERROR] && json_type(has[ERROR]) != JSON_NULL);

	for (size_t i = 0; i < ARRAY_LEN(others); i++) {
		if (json_type(has[others[i]]) == JSON_NULL && (answers || others[i] == PARAMS))
			has[others[i]] = NULL;
	}
}

/* Where JSON has only floating point, 1 comes back as 1.0. */
static void read_answered_id(const struct json_val *v, struct rpc_id *ret)
{
	uint64_t u;

	if (!rpc_id_read(v, ret) && json_uint64(v, &u))
		read_integer(u, false, ret);
}

int rpc_read(const struct json_val *v, struct rpc_msg *ret, struct rpc_fault *ret_fault,
	     bool *ret_silent)
{
	const struct json_val *has[MEMBERS];
	bool response;

	json_get_all(v, member_names, MEMBERS, has);
	drop_nulls(has);
	response = !has[METHOD] && (has[RESULT] || has[ERROR]);
	ret->kind = response ? RPC_RESPONSE : has[ID] ? RPC_REQUEST : RPC_NOTIFICATION;
	ret->method = STR_NONE;
	ret->params = ret->result = ret->error = NULL;
	ret->id.n = 0;
	*ret_silent = response || (json_type(has[METHOD]) == JSON_STR && !has[ID]);
	if (json_type(v) != JSON_OBJECT)
		return rpc_fault_set(ret_fault, RPC_INVALID_REQUEST,
				     "a message takes an object, not %s",
				     json_type_name(json_type(v)));
	if (response)
		read_answered_id(has[ID], &ret->id);
	else
		rpc_id_read(has[ID], &ret->id);
	if (check_keys(v, ret, ret_fault) < 0)
		return -1;
	if (!str_is(json_str(has[JSONRPC]), "2.0"))
		return rpc_fault_set(ret_fault, RPC_INVALID_REQUEST, "jsonrpc takes \"2.0\"");
	if (response)
		return read_response(has, ret, ret_fault);
	return read_call(has, ret, ret_fault);
}

static void rpc_begin(struct json_writer *w)
{
	json_write_object(w);
	json_write_raw(w, STR_LIT("\"jsonrpc\":\"2.0\""));
}

static void put_id(struct json_writer *w, const struct rpc_id *id)
{
	json_write_name(w, "id");
	json_write_raw(w, rpc_id_str(id));
}

static void rpc_write_data(struct json_writer *w, const struct rpc_fault *f)
{
	struct str more = str_of(f->data);

	json_write_object(w);
	json_write_name(w, "code");
	json_write_text(w, f->reason->name);
	json_write_name(w, "cause");
	json_write_text(w, f->message);
	json_write_name(w, "remediation");
	json_write_text(w, f->reason->remediation);
	json_write_name(w, "failure");
	json_write_text(w, err_failure_names[f->reason->failure]);
	json_write_name(w, "retryable");
	json_write_bool(w, f->reason->retryable);
	if (more.n > 2) /* an object's members, without its braces */
		json_write_raw(w, (struct str){ more.p + 1, more.n - 2 });
	json_write_object_end(w);
}

void rpc_write_error(struct json_writer *w, const struct rpc_fault *f)
{
	json_write_object(w);
	json_write_name(w, "code");
	json_write_int(w, f->code);
	json_write_name(w, "message");
	json_write_text(w, f->message);
	if (f->reason || f->data[0])
		json_write_name(w, "data");
	if (f->reason)
		rpc_write_data(w, f);
	else if (f->data[0])
		json_write_raw(w, str_of(f->data));
	json_write_object_end(w);
}

void rpc_write_fault(struct json_writer *w, const struct rpc_id *id, const struct rpc_fault *f)
{
	rpc_begin(w);
	if (id && id->n > 0)
		put_id(w, id);
	json_write_name(w, "error");
	rpc_write_error(w, f);
	rpc_write_end(w);
}

void rpc_write_result(struct json_writer *w, const struct rpc_id *id)
{
	rpc_begin(w);
	put_id(w, id);
	json_write_name(w, "result");
}

void rpc_write_request(struct json_writer *w, uint64_t id, const char *method)
{
	rpc_begin(w);
	json_write_name(w, "id");
	json_write_uint(w, id);
	json_write_name(w, "method");
	json_write_text(w, method);
	json_write_name(w, "params");
}

void rpc_write_notification(struct json_writer *w, const char *method)
{
	rpc_begin(w);
	json_write_name(w, "method");
	json_write_text(w, method);
	json_write_name(w, "params");
}

void rpc_write_end(struct json_writer *w)
{
	json_write_object_end(w);
}
