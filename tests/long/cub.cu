// SPDX-License-Identifier: MIT
// CUB and Thrust: device-wide algorithms against the same on the CPU.
#include "tests/e2e/e2e.h"

#include <algorithm>
#include <numeric>
#include <vector>

#include <cub/cub.cuh>
#include <thrust/device_vector.h>
#include <thrust/host_vector.h>
#include <thrust/sort.h>
#include <thrust/unique.h>

#define N 3000

template <typename T> static T *upload(const std::vector<T> &v)
{
	T *d;

	RT(cudaMalloc(&d, v.size() * sizeof(T)));
	RT(cudaMemcpy(d, v.data(), v.size() * sizeof(T), cudaMemcpyDefault));
	return d;
}

template <typename T> static std::vector<T> download(const T *d, size_t n)
{
	std::vector<T> v(n);

	RT(cudaMemcpy(v.data(), d, n * sizeof(T), cudaMemcpyDefault));
	return v;
}

// CUB's calls come in pairs: how much memory, and then the work.
template <typename F> static void twice(F f)
{
	size_t bytes = 0;
	void *tmp = nullptr;

	RT(f(tmp, bytes));
	RT(cudaMalloc(&tmp, bytes));
	RT(f(tmp, bytes));
	RT(cudaFree(tmp));
}

template <typename T> static void same(const std::vector<T> &got, const std::vector<T> &want, const char *what)
{
	for (size_t i = 0; i < want.size(); i++)
		if (!(got[i] == want[i]))
			die("%s: at %zu", what, i);
}

struct odd {
	__host__ __device__ bool operator()(int x) const
	{
		return x & 1;
	}
};

int main()
{
	std::vector<int> v(N), want(N);
	std::vector<unsigned> keys(N);
	int *in, *out, *count, *bins;
	unsigned *k0, *k1;

	for (int i = 0; i < N; i++) {
		keys[i] = i * 2654435761u;
		v[i] = keys[i] >> 20;
	}
	in = upload(v);
	out = upload(v);
	count = upload(std::vector<int>(1));
	bins = upload(std::vector<int>(16));

	twice([&](void *t, size_t &n) { return cub::DeviceReduce::Sum(t, n, in, out, N); });
	same(download(out, 1), {std::accumulate(v.begin(), v.end(), 0)}, "reduce");

	twice([&](void *t, size_t &n) { return cub::DeviceScan::ExclusiveSum(t, n, in, out, N); });
	std::exclusive_scan(v.begin(), v.end(), want.begin(), 0);
	same(download(out, N), want, "scan");

	twice([&](void *t, size_t &n) { return cub::DeviceSelect::If(t, n, in, out, count, N, odd()); });
	want.clear();
	std::copy_if(v.begin(), v.end(), std::back_inserter(want), odd());
	same(download(count, 1), {(int)want.size()}, "select: how many");
	same(download(out, want.size()), want, "select");

	twice([&](void *t, size_t &n) { return cub::DeviceHistogram::HistogramEven(t, n, in, bins, 17, 0, 4096, N); });
	want.assign(16, 0);
	for (int x : v)
		want[x / 256]++;
	same(download(bins, 16), want, "histogram");

	k0 = upload(keys);
	k1 = upload(keys);
	twice([&](void *t, size_t &n) { return cub::DeviceRadixSort::SortPairs(t, n, k0, k1, in, out, N); });
	std::vector<std::pair<unsigned, int>> pairs(N);
	for (int i = 0; i < N; i++)
		pairs[i] = {keys[i], v[i]};
	std::sort(pairs.begin(), pairs.end());
	std::vector<unsigned> sorted = download(k1, N);
	std::vector<int> values = download(out, N);
	for (int i = 0; i < N; i++)
		if (sorted[i] != pairs[i].first || values[i] != pairs[i].second)
			die("radix sort: at %d", i);

	thrust::device_vector<int> d(v.begin(), v.end());
	thrust::sort(d.begin(), d.end());
	d.erase(thrust::unique(d.begin(), d.end()), d.end());
	want = v;
	std::sort(want.begin(), want.end());
	want.erase(std::unique(want.begin(), want.end()), want.end());
	if (d.size() != want.size() || !std::equal(want.begin(), want.end(), thrust::host_vector<int>(d).begin()))
		die("thrust: sort and unique");
	puts("cub: ok");
	return 0;
}
