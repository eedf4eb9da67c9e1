/* SPDX-License-Identifier: MIT */
/* The word that the server writes into a watch's place. */
#ifndef RGPU_API_WATCH_H
#define RGPU_API_WATCH_H

/* With the watch's mark: the work has not completed, but failed or gone. The client asks, and is told what. */
#define RGPU_WATCH_ASK (1ull << 63)

#endif
