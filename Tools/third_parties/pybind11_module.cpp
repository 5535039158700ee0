// An extension module made with pybind11: classes, callbacks, exceptions of
// C++, and threads of C++ that call Python.

#include <pybind11/functional.h>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <cstdint>
#include <functional>
#include <stdexcept>
#include <thread>
#include <vector>

namespace py = pybind11;

class Counter {
public:
    explicit Counter(std::int64_t start) : value_(start) {}
    std::int64_t add(std::int64_t n) { return value_ += n; }
    std::int64_t value() const { return value_; }
private:
    std::int64_t value_;
};

static std::uint64_t
burn(std::uint64_t rounds)
{
    std::uint64_t x = 1;
    for (std::uint64_t i = 0; i < rounds; i++) {
        x = x * 6364136223846793005u + 1442695040888963407u;
    }
    return x;
}

static std::vector<int>
apply(const std::function<int(int)> &function, const std::vector<int> &items)
{
    std::vector<int> results;
    for (int item : items) {
        results.push_back(function(item));
    }
    return results;
}

static void
fail(const std::string &message)
{
    throw std::out_of_range(message);
}

static int
call_from_threads(const std::function<int(int)> &function, int threads,
                  int calls)
{
    std::vector<int> sums(threads);
    {
        py::gil_scoped_release release;
        std::vector<std::thread> running;
        for (int t = 0; t < threads; t++) {
            running.emplace_back([&, t] {
                for (int i = 0; i < calls; i++) {
                    py::gil_scoped_acquire acquire;
                    sums[t] += function(i);
                }
            });
        }
        for (std::thread &thread : running) {
            thread.join();
        }
    }
    int sum = 0;
    for (int part : sums) {
        sum += part;
    }
    return sum;
}

PYBIND11_MODULE(pybind11_module, m)
{
    py::class_<Counter>(m, "Counter")
        .def(py::init<std::int64_t>(), py::arg("start") = 0)
        .def("add", &Counter::add)
        .def_property_readonly("value", &Counter::value);
    m.def("burn", &burn);
    m.def("burn_without_gil", &burn,
          py::call_guard<py::gil_scoped_release>());
    m.def("apply", &apply);
    m.def("fail", &fail);
    m.def("call_from_threads", &call_from_threads);
}
