/* SPDX-License-Identifier: MIT */
/* What HOST_NEXT says of a function beside a callback's status. */
#ifndef RGPU_API_HOSTFUNC_H
#define RGPU_API_HOSTFUNC_H

/* The stream or the graph does not come to it, for the record that gave it failed: it is not to be called, and still DONE. */
#define RGPU_HOST_REFUSED (-1)

#endif
