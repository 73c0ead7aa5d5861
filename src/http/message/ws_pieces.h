#pragma once

/*
 * Frames that one WebSocket message comes in. wslay keeps each of them by itself until the last one
 * is there, with some 100 bytes beside what it carries: bytes alone would be no bound.
 */
#include <wslay/wslay.h>

enum { WS_PIECES_MAX = 1024 };

/* To be called as a frame begins; *pieces counts. More are answered by a close frame (1009), and
 * nothing more is read. */
static inline void ws_count_piece(wslay_event_context_ptr context, uint8_t opcode, unsigned *pieces)
{
	if (opcode >= WSLAY_CONNECTION_CLOSE)
		return;
	*pieces = opcode == WSLAY_CONTINUATION_FRAME ? *pieces + 1 : 1;
	if (*pieces <= WS_PIECES_MAX)
		return;
	wslay_event_shutdown_read(context);
	wslay_event_queue_close(context, WSLAY_CODE_MESSAGE_TOO_BIG, NULL, 0);
}
