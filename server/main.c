// SPDX-License-Identifier: MIT
/* rgpu-server: runs the CUDA calls of programs on other machines. */
#include "lib/log.h"
#include "server/listener.h"
#include "server/nvml.h"
#include "server/opts.h"
#include "server/pair.h"
#include "server/process.h"

int main(int argc, char **argv)
{
	static struct server_opts o;
	int rc;

	rgpu_log_init("", RGPU_LOG_NOTE); /* what the configuration's lines are told with: FILE:LINE first */
	rc = server_opts_parse(argc, argv, &o);
	if (rc)
		return rc == 1 ? 0 : rc;
	rgpu_log_init("rgpu-server", o.verbose ? RGPU_LOG_INFO : RGPU_LOG_NOTE);
	switch (o.mode) {
	case MODE_PAIR:
		return pair_run(&o);
	case MODE_WORKER:
		worker_process(o.fd);
	case MODE_DEVICES:
		return devices_process(o.fd, o.driver, o.blas);
	case MODE_TELEMETRY:
		return nvml_process(o.fd, o.nvml);
	case MODE_SERVE:
		break;
	}
	return listener_run(&o);
}
