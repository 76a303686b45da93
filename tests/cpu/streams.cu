// Streams, events, host functions, graphs by capture and by hand, and what capturing forbids.
#include <vector>
#include "test.h"

__global__ void add(int *x, int value, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        x[i] += value;
}

static void CUDART_CB count_call(void *data)
{
    ++*(int *)data;
}

int main()
{
    enum { N = 1000, STREAMS = 3 };
    int *d, *h, calls = 0;
    cudaStream_t stream[STREAMS], low;
    cudaEvent_t start, stop, never, untimed;
    OK(cudaMalloc(&d, N * sizeof *d));
    OK(cudaMallocHost(&h, N * sizeof *h));
    memset(h, 0, N * sizeof *h);
    for (auto &s : stream)
        OK(cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking));
    OK(cudaEventCreate(&start));
    OK(cudaEventCreate(&stop));
    OK(cudaEventCreate(&never));
    OK(cudaEventCreateWithFlags(&untimed, cudaEventDisableTiming));

    // Three streams in a row, ordered by events.
    OK(cudaEventRecord(start, stream[0]));
    OK(cudaMemcpyAsync(d, h, N * sizeof *h, cudaMemcpyHostToDevice, stream[0]));
    OK(cudaEventRecord(untimed, stream[0]));
    OK(cudaStreamWaitEvent(stream[1], untimed, 0));
    add<<<(N + 127) / 128, 128, 0, stream[1]>>>(d, 3, N);
    OK(cudaEventRecord(untimed, stream[1]));
    OK(cudaStreamWaitEvent(stream[2], untimed, 0));
    OK(cudaMemcpyAsync(h, d, N * sizeof *h, cudaMemcpyDeviceToHost, stream[2]));
    OK(cudaLaunchHostFunc(stream[2], count_call, &calls));
    OK(cudaEventRecord(stop, stream[2]));
    OK(cudaEventSynchronize(stop));
    EXPECT(h[0] == 3 && h[N - 1] == 3 && calls == 1);
    OK(cudaStreamQuery(stream[2]));
    OK(cudaEventQuery(stop));

    // Times.
    float ms = -1;
    OK(cudaEventElapsedTime(&ms, start, stop));
    EXPECT(ms > 0 && ms < 5000);
    FAILS(cudaErrorInvalidResourceHandle, cudaEventElapsedTime(&ms, start, never));
    FAILS(cudaErrorInvalidResourceHandle, cudaEventElapsedTime(&ms, start, untimed));

    // Priorities.
    int least, greatest;
    OK(cudaDeviceGetStreamPriorityRange(&least, &greatest));
    EXPECT(least >= greatest);
    OK(cudaStreamCreateWithPriority(&low, cudaStreamNonBlocking, least));
    OK(cudaStreamDestroy(low));

    // A captured graph: nothing runs until it is launched, then as often as it is launched.
    cudaGraph_t graph, by_hand;
    cudaGraphExec_t exec, exec_by_hand;
    size_t nodes = 0;
    OK(cudaMemset(d, 0, N * sizeof *d));
    OK(cudaDeviceSynchronize());
    OK(cudaStreamBeginCapture(stream[0], cudaStreamCaptureModeGlobal));
    for (int i = 0; i < 4; i++)
        add<<<(N + 127) / 128, 128, 0, stream[0]>>>(d, i, N);
    OK(cudaEventRecord(untimed, stream[0])); // another stream joins, and comes back
    OK(cudaStreamWaitEvent(stream[1], untimed, 0));
    add<<<(N + 127) / 128, 128, 0, stream[1]>>>(d, 10, N);
    OK(cudaEventRecord(untimed, stream[1]));
    OK(cudaStreamWaitEvent(stream[0], untimed, 0));
    OK(cudaStreamEndCapture(stream[0], &graph));
    OK(cudaGraphGetNodes(graph, nullptr, &nodes));
    OK(cudaGraphInstantiate(&exec, graph, 0));
    OK(cudaMemcpy(h, d, N * sizeof *h, cudaMemcpyDeviceToHost));
    EXPECT(nodes == 5 && h[7] == 0);
    for (int i = 0; i < 3; i++)
        OK(cudaGraphLaunch(exec, stream[0]));
    OK(cudaStreamSynchronize(stream[0]));
    OK(cudaMemcpy(h, d, N * sizeof *h, cudaMemcpyDeviceToHost));
    EXPECT(h[7] == 3 * 16);

    // The same by hand.
    cudaKernelNodeParams params;
    cudaGraphNode_t first, second;
    int value = 5, n = N;
    void *arguments[] = {&d, &value, &n};
    memset((void *)&params, 0, sizeof params);
    params.func = (void *)add;
    params.gridDim = dim3((N + 127) / 128);
    params.blockDim = dim3(128);
    params.kernelParams = arguments;
    OK(cudaGraphCreate(&by_hand, 0));
    OK(cudaGraphAddKernelNode(&first, by_hand, nullptr, 0, &params));
    value = 100; // the node has kept its own copy
    OK(cudaGraphAddKernelNode(&second, by_hand, &first, 1, &params));
    OK(cudaGraphInstantiate(&exec_by_hand, by_hand, 0));
    OK(cudaGraphLaunch(exec_by_hand, stream[0]));
    OK(cudaStreamSynchronize(stream[0]));
    OK(cudaMemcpy(h, d, N * sizeof *h, cudaMemcpyDeviceToHost));
    EXPECT(h[7] == 3 * 16 + 105);

    // What capturing forbids.
    int *more;
    cudaGraph_t none;
    OK(cudaStreamBeginCapture(stream[0], cudaStreamCaptureModeGlobal));
    FAILS(cudaErrorStreamCaptureUnsupported, cudaMalloc(&more, 4));
    FAILS(cudaErrorStreamCaptureInvalidated, cudaStreamEndCapture(stream[0], &none));
    EXPECT(none == nullptr);

    OK(cudaGraphExecDestroy(exec));
    OK(cudaGraphExecDestroy(exec_by_hand));
    OK(cudaGraphDestroy(graph));
    OK(cudaGraphDestroy(by_hand));
    for (auto s : stream)
        OK(cudaStreamDestroy(s));
    for (auto e : {start, stop, never, untimed})
        OK(cudaEventDestroy(e));
    OK(cudaFree(d));
    OK(cudaFreeHost(h));
    return finish();
}
