/* Messages of Connect: whatever the pieces are that a body comes in, the same messages come out
 * as of the whole. The first byte is the size of the pieces. */
#include <string.h>

#include "door/http/frame.h"
#include "fuzz.h"

enum { MESSAGE_MAX = 256 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	struct str text = { (const char *)data + 1, n > 0 ? n - 1 : 0 };
	size_t step = n > 0 ? data[0] + 1u : 1;
	struct frames whole = { text };
	struct frame_in in = FRAME_IN_INIT(MESSAGE_MAX, NULL);
	struct err e = ERR_INIT, why = ERR_INIT;
	struct str message, same;
	int got = 0;

	for (size_t at = 0; at < text.n && got >= 0; at += step) {
		struct str piece = { text.p + at, text.n - at < step ? text.n - at : step };

		while ((got = frame_in_next(&in, &piece, &message, &e)) > 0) {
			MUST(frame_next(&whole, &same, &why) == 1 && str_eq(message, same));
			MUST(message.n <= MESSAGE_MAX && in.text.cap <= MESSAGE_MAX);
		}
		MUST(got < 0 || piece.n == 0);
	}
	if (got == 0)
		MUST(frame_next(&whole, &same, &why) == (frame_in_whole(&in) ? 0 : -1));
	else
		MUST(e.code == ERR_TOO_LARGE ||
		     (e.code == ERR_INVALID && frame_next(&whole, &same, &why) < 0));
	frame_in_fini(&in);
	return 0;
}
