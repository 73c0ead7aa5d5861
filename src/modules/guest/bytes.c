/* Texts and bytes for TextEncoder, TextDecoder and crypto (js/web.js). */
#include <sys/random.h>

#include "modules/guest/internal.h"

int guest_bytes(JSContext *ctx, JSValueConst v, uint8_t **ret, size_t *ret_n)
{
	size_t at = 0, n = 0, size = 0;
	JSClassID class = JS_GetClassID(v);
	JSValue buffer = JS_DupValue(ctx, v);

	if (class >= guest_of(ctx)->bytes_first && class <= guest_of(ctx)->bytes_last) {
		JS_FreeValue(ctx, buffer);
		buffer = JS_GetTypedArrayBuffer(ctx, v, &at, &n, NULL);
	}
	*ret = JS_IsException(buffer) ? NULL : JS_GetArrayBuffer(ctx, &size, buffer);
	if (JS_VALUE_GET_PTR(buffer) == JS_VALUE_GET_PTR(v))
		n = size;
	JS_FreeValue(ctx, buffer);
	if (JS_HasException(ctx))
		return -1;
	if (at + n > size)
		n = 0;
	*ret += n ? at : 0;
	*ret_n = n;
	return 0;
}

static JSValue new_bytes(JSContext *ctx, const void *p, size_t n)
{
	/* It looks at three arguments, however few it is told. */
	JSValue of[3] = { JS_NewArrayBufferCopy(ctx, n ? p : "", n), JS_UNDEFINED, JS_UNDEFINED },
		made;

	if (JS_IsException(of[0]))
		return of[0];
	made = JS_NewTypedArray(ctx, 1, of, JS_TYPED_ARRAY_UINT8);
	JS_FreeValue(ctx, of[0]);
	return made;
}

JSValue bytes_encode(JSContext *ctx, JSValueConst self, int argc, JSValueConst *argv)
{
	size_t n;
	const char *p = JS_ToCStringLen(ctx, &n, argv[0]);
	JSValue made = p ? new_bytes(ctx, p, n) : JS_EXCEPTION;

	JS_FreeCString(ctx, p);
	return made;
}

/* How many bytes the character at p has; 0: it is none, and *ret_bad bytes of it are one mistake,
 * as the Encoding standard counts them. */
static size_t utf8_size(const uint8_t *p, size_t n, size_t *ret_bad)
{
	uint8_t c = p[0], least = c == 0xe0 ? 0xa0 : c == 0xf0 ? 0x90 : 0x80;
	uint8_t most = c == 0xed ? 0x9f : c == 0xf4 ? 0x8f : 0xbf;
	size_t size = c < 0x80 ? 1 : c < 0xc2 ? 0 : c < 0xe0 ? 2 : c < 0xf0 ? 3 : c < 0xf5 ? 4 : 0;

	*ret_bad = 1;
	for (size_t i = 1; i < size; i++) {
		if (i >= n || p[i] < least || p[i] > most) {
			*ret_bad = i;
			return 0;
		}
		least = 0x80;
		most = 0xbf;
	}
	return size;
}

JSValue bytes_decode(JSContext *ctx, JSValueConst self, int argc, JSValueConst *argv)
{
	autobuf struct buf text = BUF_INIT((size_t)1 << 30);
	size_t n, from = 0, bad, size;
	struct err e;
	uint8_t *p;

	if (guest_bytes(ctx, argv[0], &p, &n) < 0)
		return JS_EXCEPTION;
	for (size_t i = 0; i < n; i += size) {
		size = utf8_size(p + i, n - i, &bad);
		if (size)
			continue;
		if (JS_ToBool(ctx, argv[1]))
			return JS_UNDEFINED;
		if (buf_add(&text, (char *)p + from, i - from, &e) < 0 ||
		    buf_add(&text, "\xef\xbf\xbd", 3, &e) < 0)
			return JS_ThrowOutOfMemory(ctx);
		size = bad;
		from = i + bad;
	}
	if (from == 0)
		return JS_NewStringLen(ctx, n ? (char *)p : "", n);
	if (buf_add(&text, (char *)p + from, n - from, &e) < 0)
		return JS_ThrowOutOfMemory(ctx);
	return JS_NewStringLen(ctx, text.p, text.n);
}

void guest_random(void *to, size_t n)
{
	for (size_t got = 0; got < n;) {
		ssize_t more = getrandom((char *)to + got, n - got, 0);

		if (more < 0 && errno != EINTR)
			guest_exit(CODE_EXIT_START);
		got += more > 0 ? (size_t)more : 0;
	}
}

JSValue bytes_random(JSContext *ctx, JSValueConst self, int argc, JSValueConst *argv)
{
	uint8_t *p;
	size_t n;

	if (guest_bytes(ctx, argv[0], &p, &n) < 0)
		return JS_EXCEPTION;
	guest_random(p, n);
	return JS_DupValue(ctx, argv[0]);
}

JSValue bytes_digest(JSContext *ctx, JSValueConst self, int argc, JSValueConst *argv)
{
	uint32_t algorithm;
	uint8_t *p, out[64];
	size_t n;

	if (JS_ToUint32(ctx, &algorithm, argv[0]) < 0 || guest_bytes(ctx, argv[1], &p, &n) < 0)
		return JS_EXCEPTION;
	return JS_NewArrayBufferCopy(ctx, out, guest_digest(algorithm, p, n, out));
}
