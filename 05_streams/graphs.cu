// graphs: a chain of small kernels, launched one by one and as a CUDA graph. The graph is written
// down once (captured from a stream, or built node by node) and then launched with one call.
//
// Predict before you run it: a launch costs the host a few microseconds, and these kernels run for
// less. Which of the two, host or device, waits for the other? And with a graph?
//
// usage: graphs [--kernels 200] [--n 1k]
// sanitizer: --kernels 20
#include "../common/lesson.h"

enum { BLOCK = 256, MAX_KERNELS = 10000 };

__global__ void add_one(size_t n, float *x)
{
    size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        x[i] += 1.0f;
}

struct chain {
    size_t n;
    int kernels;
    float *d_x;
    cudaStream_t stream;
};

static unsigned grid_of(const struct chain *c)
{
    return (unsigned)((c->n + BLOCK - 1) / BLOCK);
}

static void launch_one_by_one(const struct chain *c)
{
    for (int k = 0; k < c->kernels; k++) {
        add_one<<<grid_of(c), BLOCK, 0, c->stream>>>(c->n, c->d_x);
        CUDA_CHECK_LAUNCH();
    }
}

// Capture: the same calls as before, but the stream writes them down and runs nothing.
static cudaGraph_t capture_chain(const struct chain *c)
{
    cudaGraph_t graph;
    CUDA_CHECK(cudaStreamBeginCapture(c->stream, cudaStreamCaptureModeThreadLocal));
    launch_one_by_one(c);
    CUDA_CHECK(cudaStreamEndCapture(c->stream, &graph));
    return graph;
}

// Built by hand: a node for each kernel; its dependency is the node before.
static cudaGraph_t build_chain(const struct chain *c)
{
    cudaGraph_t graph;
    cudaGraphNode_t node, before;
    size_t n = c->n;
    float *d_x = c->d_x;
    void *arguments[] = {&n, &d_x}; // copied when the node is added
    cudaKernelNodeParams params = {};
    params.func = (void *)add_one;
    params.gridDim = dim3(grid_of(c));
    params.blockDim = dim3(BLOCK);
    params.kernelParams = arguments;
    CUDA_CHECK(cudaGraphCreate(&graph, 0));
    for (int k = 0; k < c->kernels; k++) {
        CUDA_CHECK(cudaGraphAddKernelNode(&node, graph, k ? &before : NULL, k ? 1 : 0, &params));
        before = node;
    }
    return graph;
}

// Rounded to nanoseconds, for the table.
static double us_a_kernel(const struct chain *c, struct timing t)
{
    return round(1e6 * t.median_ms / c->kernels) / 1e3;
}

struct cost {
    struct timing wall, host, device; // of the whole chain
    int ok;
};

// exec NULL: one by one. The host's part ends when the last call has returned.
static struct cost measure(const struct chain *c, cudaGraphExec_t exec, const char *name)
{
    struct cost cost;
    int reps = common_options.reps;
    double *wall = (double *)host_malloc(3 * (size_t)reps * sizeof(double));
    double *host = wall + reps, *device = host + reps;
    float *h_x = (float *)host_malloc(c->n * sizeof(float)), ms;
    cudaEvent_t start, stop;
    CUDA_CHECK(cudaEventCreate(&start));
    CUDA_CHECK(cudaEventCreate(&stop));
    for (size_t i = 0; i < c->n; i++)
        h_x[i] = (float)(i % 100);
    CUDA_CHECK(cudaMemcpy(c->d_x, h_x, c->n * sizeof(float), cudaMemcpyHostToDevice));
    for (int rep = -1; rep < reps; rep++) { // rep -1 warms up
        CUDA_CHECK_SYNC();
        CUDA_CHECK(cudaEventRecord(start, c->stream));
        double begin = host_seconds();
        if (exec)
            CUDA_CHECK(cudaGraphLaunch(exec, c->stream));
        else
            launch_one_by_one(c);
        double issued = host_seconds();
        CUDA_CHECK(cudaEventRecord(stop, c->stream));
        CUDA_CHECK(cudaEventSynchronize(stop));
        double end = host_seconds();
        CUDA_CHECK(cudaEventElapsedTime(&ms, start, stop));
        if (rep < 0)
            continue;
        wall[rep] = 1e3 * (end - begin);
        host[rep] = 1e3 * (issued - begin);
        device[rep] = ms;
    }
    memset(h_x, 0xFF, c->n * sizeof(float));
    CUDA_CHECK(cudaMemcpy(h_x, c->d_x, c->n * sizeof(float), cudaMemcpyDeviceToHost));
    struct verifier v = verify_begin(name, 0, 0); // whole numbers: exact
    for (size_t i = 0; i < c->n; i++)
        verify_value(&v, i, h_x[i], (double)(i % 100) + (reps + 1.0) * c->kernels);
    cost.ok = verify_end(&v);
    cost.wall = timing_of(wall, reps);
    cost.host = timing_of(host, reps);
    cost.device = timing_of(device, reps);
    report_extra(us_a_kernel(c, cost.host));
    report_extra(us_a_kernel(c, cost.device));
    report_extra(us_a_kernel(c, cost.wall));
    report_time(name, cost.wall, cost.ok);
    CUDA_CHECK(cudaEventDestroy(start));
    CUDA_CHECK(cudaEventDestroy(stop));
    free(h_x);
    free(wall);
    return cost;
}

int main(int argc, char **argv)
{
    struct chain c;
    c.n = 1024;
    c.kernels = 200;
    const struct option_spec options[] = {
        OPTION_SIZE("n", &c.n, 1, 1 << 26, "elements each kernel works on"),
        OPTION_INT("kernels", &c.kernels, 1, MAX_KERNELS, "kernels in the chain"),
        OPTION_END,
    };
    lesson_begin(argc, argv, "05_streams/graphs", "many small kernels with one call", options);
    require_device_memory(c.n, sizeof(float), "--n");
    CUDA_CHECK(cudaMalloc(&c.d_x, c.n * sizeof(float)));
    CUDA_CHECK(cudaStreamCreateWithFlags(&c.stream, cudaStreamNonBlocking));

    char title[64];
    snprintf(title, sizeof(title), "a chain of %d kernels", c.kernels);
    report_table(title, "host us", "device us", "total us", NULL);
    struct cost single = measure(&c, NULL, "launched one by one"), replay[2];
    double prepare_ms[2];
    for (int g = 0; g < 2; g++) {
        cudaGraphExec_t exec;
        size_t nodes = 0;
        double begin = host_seconds();
        cudaGraph_t graph = g == 0 ? capture_chain(&c) : build_chain(&c);
        CUDA_CHECK(cudaGraphInstantiateWithFlags(&exec, graph, 0)); // checked and laid out, once
        prepare_ms[g] = 1e3 * (host_seconds() - begin);
        CUDA_CHECK(cudaGraphGetNodes(graph, NULL, &nodes));
        check_that(nodes == (size_t)c.kernels, "the graph has %zu nodes, not %d", nodes, c.kernels);
        replay[g] = measure(&c, exec, g == 0 ? "graph, captured" : "graph, built node by node");
        CUDA_CHECK(cudaGraphExecDestroy(exec));
        CUDA_CHECK(cudaGraphDestroy(graph));
    }
    double per_kernel = 1e3 / c.kernels; // ms of the chain -> us a kernel
    double host_factor = single.host.median_ms / replay[0].host.median_ms;
    double total_factor = single.wall.median_ms / replay[0].wall.median_ms;
    double saved_ms = single.wall.median_ms - replay[0].wall.median_ms;
    report_number("host_factor", host_factor);
    report_number("total_factor", total_factor);
    report_number("device_factor", single.device.median_ms / replay[0].device.median_ms);
    report_number("capture_ms", prepare_ms[0]);
    report_number("build_ms", prepare_ms[1]);
    if (DEVICE_IS_CPU) {
        printf("\nCPU backend: a kernel runs inside its launch call, and a graph only repeats the "
               "calls: right, but not faster.\n");
    } else {
        printf("\na kernel costs %.2f us one by one and %.2f us in the graph, %.1f times less; the "
               "host is busy for %.2f and\n%.3f us of it, %.0f times less. ",
               per_kernel * single.wall.median_ms, per_kernel * replay[0].wall.median_ms,
               total_factor, per_kernel * single.host.median_ms,
               per_kernel * replay[0].host.median_ms, host_factor);
        printf("Preparing took %.3f ms by capture and %.3f ms by hand", prepare_ms[0],
               prepare_ms[1]);
        if (saved_ms > 0)
            printf(":\nit has paid off after %.0f launches", ceil(prepare_ms[0] / saved_ms));
        printf(".\n");
    }
    CUDA_CHECK(cudaStreamDestroy(c.stream));
    CUDA_CHECK(cudaFree(c.d_x));
    return lesson_end();
}
