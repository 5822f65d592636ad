module @jit_step attributes {mhlo.cross_program_prefetches = [], mhlo.input_output_alias = [], mhlo.is_dynamic = false, mhlo.num_partitions = 8 : i32, mhlo.use_auto_spmd_partitioning = false} {
  func.func @main(%arg0: tensor<1024x256xf32> {mhlo.sharding = "{mesh['data'=4,'model'=2], [{'model'}, {}]}"}, %arg1: tensor<256x1024xf32> {mhlo.sharding = "{mesh['data'=4,'model'=2], [{}, {'model'}]}"}, %arg2: tensor<512x256xf32> {mhlo.sharding = "{mesh['data'=4,'model'=2], [{'data'}, {}]}"}) -> (tensor<f32>, tensor<1024x256xf32> {mhlo.sharding = "{mesh['data'=4,'model'=2], [{'model'}, {}]}"}, tensor<256x1024xf32> {mhlo.sharding = "{mesh['data'=4,'model'=2], [{}, {'model'}]}"}) {
    %0 = stablehlo.dot %arg2, %arg1, precision = [DEFAULT, DEFAULT] {mhlo.sharding = "{mesh['data'=4,'model'=2], [{'data'}, {'model'}]}"} : (tensor<512x256xf32>, tensor<256x1024xf32>) -> tensor<512x1024xf32>
    %cst = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %1 = stablehlo.broadcast_in_dim %cst, dims = [] {mhlo.sharding = "{mesh['data'=4,'model'=2], [{'data'}, {'model'}]}"} : (tensor<f32>) -> tensor<512x1024xf32>
    %2 = stablehlo.maximum %0, %1 {mhlo.sharding = "{mesh['data'=4,'model'=2], [{'data'}, {'model'}]}"} : tensor<512x1024xf32>
    %3 = stablehlo.dot %2, %arg0, precision = [DEFAULT, DEFAULT] {mhlo.sharding = "{mesh['data'=4,'model'=2], [{'data'}, {}]}"} : (tensor<512x1024xf32>, tensor<1024x256xf32>) -> tensor<512x256xf32>
    %4 = stablehlo.subtract %3, %arg2 {mhlo.sharding = "{mesh['data'=4,'model'=2], [{'data'}, {}]}"} : tensor<512x256xf32>
    %5 = stablehlo.multiply %4, %4 {mhlo.sharding = "{mesh['data'=4,'model'=2], [{'data'}, {}]}"} : tensor<512x256xf32>
    %6 = stablehlo.reduce(%5 init: %cst) applies stablehlo.add across dimensions = [0, 1] : (tensor<512x256xf32>, tensor<f32>) -> tensor<f32>
    %cst_0 = stablehlo.constant dense<1.310720e+05> : tensor<f32>
    %7 = stablehlo.divide %6, %cst_0 : tensor<f32>
    %cst_1 = stablehlo.constant dense<2.000000e+00> : tensor<f32>
    %8 = stablehlo.broadcast_in_dim %cst_1, dims = [] {mhlo.sharding = "{mesh['data'=4,'model'=2], [{'data'}, {}]}"} : (tensor<f32>) -> tensor<512x256xf32>
    %9 = stablehlo.multiply %4, %8 {mhlo.sharding = "{mesh['data'=4,'model'=2], [{'data'}, {}]}"} : tensor<512x256xf32>
    %cst_2 = stablehlo.constant dense<7.62939453E-6> : tensor<f32>
    %10 = stablehlo.broadcast_in_dim %cst_2, dims = [] {mhlo.sharding = "{mesh['data'=4,'model'=2], [{'data'}, {}]}"} : (tensor<f32>) -> tensor<512x256xf32>
    %11 = stablehlo.multiply %9, %10 {mhlo.sharding = "{mesh['data'=4,'model'=2], [{'data'}, {}]}"} : tensor<512x256xf32>
    %12 = stablehlo.dot_general %11, %2, contracting_dims = [0] x [0], precision = [DEFAULT, DEFAULT] {mhlo.sharding = "{mesh['data'=4,'model'=2], [{}, {'model'}]}"} : (tensor<512x256xf32>, tensor<512x1024xf32>) -> tensor<256x1024xf32>
    %13 = stablehlo.transpose %12, dims = [1, 0] {mhlo.sharding = "{mesh['data'=4,'model'=2], [{'model'}, {}]}", result_layout = dense<[0, 1]> : tensor<2xindex>, xla_shape = "f32[1024,256]{0,1}"} : (tensor<256x1024xf32>) -> tensor<1024x256xf32>
    %cst_3 = stablehlo.constant dense<1.000000e-01> : tensor<f32>
    %14 = stablehlo.broadcast_in_dim %cst_3, dims = [] {mhlo.sharding = "{mesh['data'=4,'model'=2], [{'model'}, {}]}"} : (tensor<f32>) -> tensor<1024x256xf32>
    %15 = stablehlo.multiply %13, %14 {mhlo.sharding = "{mesh['data'=4,'model'=2], [{'model'}, {}]}", result_layout = dense<[0, 1]> : tensor<2xindex>, xla_shape = "f32[1024,256]{0,1}"} : tensor<1024x256xf32>
    %16 = stablehlo.subtract %arg0, %15 {mhlo.sharding = "{mesh['data'=4,'model'=2], [{'model'}, {}]}"} : tensor<1024x256xf32>
    %17 = stablehlo.compare GT, %0, %1 {mhlo.sharding = "{mesh['data'=4,'model'=2], [{'data'}, {'model'}]}"} : (tensor<512x1024xf32>, tensor<512x1024xf32>) -> tensor<512x1024xi1>
    %18 = stablehlo.dot_general %11, %arg0, contracting_dims = [1] x [1], precision = [DEFAULT, DEFAULT] {mhlo.sharding = "{mesh['data'=4,'model'=2], [{'data'}, {'model'}]}"} : (tensor<512x256xf32>, tensor<1024x256xf32>) -> tensor<512x1024xf32>
    %19 = stablehlo.select %17, %18, %1 {mhlo.sharding = "{mesh['data'=4,'model'=2], [{'data'}, {'model'}]}"} : tensor<512x1024xi1>, tensor<512x1024xf32>
    %20 = stablehlo.dot_general %19, %arg2, contracting_dims = [0] x [0], precision = [DEFAULT, DEFAULT] {mhlo.sharding = "{mesh['data'=4,'model'=2], [{'model'}, {}]}"} : (tensor<512x1024xf32>, tensor<512x256xf32>) -> tensor<1024x256xf32>
    %21 = stablehlo.transpose %20, dims = [1, 0] {mhlo.sharding = "{mesh['data'=4,'model'=2], [{}, {'model'}]}", result_layout = dense<[0, 1]> : tensor<2xindex>, xla_shape = "f32[256,1024]{0,1}"} : (tensor<1024x256xf32>) -> tensor<256x1024xf32>
    %22 = stablehlo.broadcast_in_dim %cst_3, dims = [] {mhlo.sharding = "{mesh['data'=4,'model'=2], [{}, {'model'}]}"} : (tensor<f32>) -> tensor<256x1024xf32>
    %23 = stablehlo.multiply %21, %22 {mhlo.sharding = "{mesh['data'=4,'model'=2], [{}, {'model'}]}", result_layout = dense<[0, 1]> : tensor<2xindex>, xla_shape = "f32[256,1024]{0,1}"} : tensor<256x1024xf32>
    %24 = stablehlo.subtract %arg1, %23 {mhlo.sharding = "{mesh['data'=4,'model'=2], [{}, {'model'}]}"} : tensor<256x1024xf32>
    return %7, %16, %24 : tensor<f32>, tensor<1024x256xf32>, tensor<256x1024xf32>
  }
}
