# The libraries that Longshort uses: Debian packages, and LibTorch from the Python wheel in .venv.

find_package(Threads REQUIRED)
find_package(absl REQUIRED)
find_package(OpenSSL REQUIRED)
find_package(ZLIB REQUIRED)
find_package(nlohmann_json REQUIRED)
find_package(GTest REQUIRED)
find_package(benchmark REQUIRED)

if(LONGSHORT_TORCH OR LONGSHORT_FUZZ)
  # gRPC's package requires Protobuf. Both are found before LibTorch, so that torch's Protobuf is not used.
  find_package(Protobuf REQUIRED)
  find_package(JPEG REQUIRED)
  find_package(PNG REQUIRED)
  # Only core and image processing: OpenCV's image codecs load GDAL, which would then parse untrusted images. Debian's CMake
  # package requires all modules (libopencv-dev), so the two libraries are found by name.
  find_path(LONGSHORT_OPENCV_INCLUDE opencv2/imgproc.hpp REQUIRED PATH_SUFFIXES opencv4 DOC "OpenCV's headers")
  find_library(LONGSHORT_OPENCV_CORE opencv_core REQUIRED DOC "OpenCV's core")
  find_library(LONGSHORT_OPENCV_IMGPROC opencv_imgproc REQUIRED DOC "OpenCV's image processing")
  add_library(longshort::opencv INTERFACE IMPORTED)
  target_include_directories(longshort::opencv SYSTEM INTERFACE ${LONGSHORT_OPENCV_INCLUDE})
  target_link_libraries(longshort::opencv INTERFACE ${LONGSHORT_OPENCV_IMGPROC} ${LONGSHORT_OPENCV_CORE})
  # Debian's libwebp has no CMake package.
  find_path(LONGSHORT_WEBP_INCLUDE webp/decode.h REQUIRED DOC "libwebp's headers")
  find_library(LONGSHORT_WEBP webp REQUIRED DOC "libwebp")
  add_library(longshort::webp INTERFACE IMPORTED)
  target_include_directories(longshort::webp SYSTEM INTERFACE ${LONGSHORT_WEBP_INCLUDE})
  target_link_libraries(longshort::webp INTERFACE ${LONGSHORT_WEBP})
  # Debian's RE2 has no CMake package. gRPC links it, too.
  find_path(LONGSHORT_RE2_INCLUDE re2/re2.h REQUIRED DOC "RE2's headers")
  find_library(LONGSHORT_RE2 re2 REQUIRED DOC "RE2")
  add_library(longshort::re2 INTERFACE IMPORTED)
  target_include_directories(longshort::re2 SYSTEM INTERFACE ${LONGSHORT_RE2_INCLUDE})
  target_link_libraries(longshort::re2 INTERFACE ${LONGSHORT_RE2})
endif()

if(LONGSHORT_TORCH)
  find_package(Boost REQUIRED)  # headers: Asio and Beast
  find_library(LONGSHORT_ZSTD zstd REQUIRED DOC "libzstd")  # Debian's has no CMake package
  find_package(gRPC CONFIG REQUIRED)
  find_package(prometheus-cpp CONFIG REQUIRED)

  # LibTorch without its CMake package, which would require a whole CUDA toolkit. Headers and two libraries are enough.
  if(NOT LONGSHORT_TORCH_ROOT)
    message(FATAL_ERROR "No LibTorch in .venv. Run deploy/install first, or set LONGSHORT_TORCH_ROOT to site-packages/torch.")
  endif()
  add_library(longshort::torch INTERFACE IMPORTED)
  target_include_directories(longshort::torch SYSTEM INTERFACE
    ${LONGSHORT_TORCH_ROOT}/include ${LONGSHORT_TORCH_ROOT}/include/torch/csrc/api/include)
  target_link_libraries(longshort::torch INTERFACE
    ${LONGSHORT_TORCH_ROOT}/lib/libtorch_cpu.so ${LONGSHORT_TORCH_ROOT}/lib/libc10.so
    ${LONGSHORT_TORCH_ROOT}/lib/libgomp.so.1)
  # LibTorch creates and destroys some hundred tensors in a step. With glibc's allocator, this takes a third of a small
  # model's time. The sanitizers have their own allocator.
  if(NOT LONGSHORT_SANITIZER)
    find_library(LONGSHORT_JEMALLOC jemalloc REQUIRED DOC "The allocator of programs that run models")
    target_link_libraries(longshort::torch INTERFACE ${LONGSHORT_JEMALLOC})
  endif()
  # LibTorch's GPU part. The program calls no function of libtorch_cuda.so, which registers its kernels when it is loaded.
  # Its own libraries (deploy/requirements-cuda.txt) are needed only where a program runs.
  if(LONGSHORT_WITH_CUDA)
    add_library(longshort::torch_cuda INTERFACE IMPORTED)
    target_link_libraries(longshort::torch_cuda INTERFACE
      longshort::torch CUDA::cudart ${LONGSHORT_TORCH_ROOT}/lib/libc10_cuda.so
      -Wl,--no-as-needed ${LONGSHORT_TORCH_ROOT}/lib/libtorch_cuda.so -Wl,--as-needed -Wl,--allow-shlib-undefined)
  endif()
endif()
