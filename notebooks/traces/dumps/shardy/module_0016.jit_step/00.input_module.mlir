module @jit_step attributes {mhlo.cross_program_prefetches = [], mhlo.input_output_alias = [], mhlo.is_dynamic = false, mhlo.num_partitions = 8 : i32, mhlo.use_auto_spmd_partitioning = false} {
  func.func private @region_0.2(%arg0: tensor<f32>, %arg1: tensor<f32>) -> tensor<f32> {
    %0 = stablehlo.add %arg0, %arg1 : tensor<f32>
    return %0 : tensor<f32>
  }
  func.func @main(%arg0: tensor<1024x256xf32> {mhlo.sharding = "{mesh['data'=4,'model'=2], [{'model'}, {}]}"}, %arg1: tensor<256x1024xf32> {mhlo.sharding = "{mesh['data'=4,'model'=2], [{}, {'model'}]}"}, %arg2: tensor<512x256xf32> {mhlo.sharding = "{mesh['data'=4,'model'=2], [{'data'}, {}]}"}) -> (tensor<f32>, tensor<1024x256xf32>, tensor<256x1024xf32>) {
    %0 = stablehlo.dot %arg2, %arg1, precision = [DEFAULT, DEFAULT] : (tensor<512x256xf32>, tensor<256x1024xf32>) -> tensor<512x1024xf32>
    %cst = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %1 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<512x1024xf32>
    %2 = stablehlo.maximum %0, %1 : tensor<512x1024xf32>
    %3 = stablehlo.dot %2, %arg0, precision = [DEFAULT, DEFAULT] : (tensor<512x1024xf32>, tensor<1024x256xf32>) -> tensor<512x256xf32>
    %4 = stablehlo.subtract %3, %arg2 : tensor<512x256xf32>
    %5 = stablehlo.multiply %4, %4 : tensor<512x256xf32>
    %cst_0 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %6 = stablehlo.reduce(%5 init: %cst_0) applies stablehlo.add across dimensions = [0, 1] : (tensor<512x256xf32>, tensor<f32>) -> tensor<f32>
    %cst_1 = stablehlo.constant dense<1.310720e+05> : tensor<f32>
    %7 = stablehlo.divide %6, %cst_1 : tensor<f32>
    %cst_2 = stablehlo.constant dense<2.000000e+00> : tensor<f32>
    %8 = stablehlo.broadcast_in_dim %cst_2, dims = [] : (tensor<f32>) -> tensor<512x256xf32>
    %9 = stablehlo.multiply %4, %8 : tensor<512x256xf32>
    %cst_3 = stablehlo.constant dense<7.62939453E-6> : tensor<f32>
    %10 = stablehlo.broadcast_in_dim %cst_3, dims = [] : (tensor<f32>) -> tensor<512x256xf32>
    %11 = stablehlo.multiply %9, %10 : tensor<512x256xf32>
    %12 = stablehlo.dot_general %11, %2, contracting_dims = [0] x [0], precision = [DEFAULT, DEFAULT] : (tensor<512x256xf32>, tensor<512x1024xf32>) -> tensor<256x1024xf32>
    %13 = stablehlo.transpose %12, dims = [1, 0] {result_layout = dense<[0, 1]> : tensor<2xindex>, xla_shape = "f32[1024,256]{0,1}"} : (tensor<256x1024xf32>) -> tensor<1024x256xf32>
    %cst_4 = stablehlo.constant dense<1.000000e-01> : tensor<f32>
    %14 = stablehlo.broadcast_in_dim %cst_4, dims = [] : (tensor<f32>) -> tensor<1024x256xf32>
    %15 = stablehlo.multiply %13, %14 {result_layout = dense<[0, 1]> : tensor<2xindex>, xla_shape = "f32[1024,256]{0,1}"} : tensor<1024x256xf32>
    %16 = stablehlo.subtract %arg0, %15 : tensor<1024x256xf32>
    %cst_5 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %17 = stablehlo.broadcast_in_dim %cst_5, dims = [] : (tensor<f32>) -> tensor<512x1024xf32>
    %18 = stablehlo.compare GT, %0, %17 : (tensor<512x1024xf32>, tensor<512x1024xf32>) -> tensor<512x1024xi1>
    %19 = stablehlo.dot_general %11, %arg0, contracting_dims = [1] x [1], precision = [DEFAULT, DEFAULT] : (tensor<512x256xf32>, tensor<1024x256xf32>) -> tensor<512x1024xf32>
    %20 = stablehlo.select %18, %19, %17 : tensor<512x1024xi1>, tensor<512x1024xf32>
    %21 = stablehlo.dot_general %20, %arg2, contracting_dims = [0] x [0], precision = [DEFAULT, DEFAULT] : (tensor<512x1024xf32>, tensor<512x256xf32>) -> tensor<1024x256xf32>
    %22 = stablehlo.transpose %21, dims = [1, 0] {result_layout = dense<[0, 1]> : tensor<2xindex>, xla_shape = "f32[256,1024]{0,1}"} : (tensor<1024x256xf32>) -> tensor<256x1024xf32>
    %cst_6 = stablehlo.constant dense<1.000000e-01> : tensor<f32>
    %23 = stablehlo.broadcast_in_dim %cst_6, dims = [] : (tensor<f32>) -> tensor<256x1024xf32>
    %24 = stablehlo.multiply %22, %23 {result_layout = dense<[0, 1]> : tensor<2xindex>, xla_shape = "f32[256,1024]{0,1}"} : tensor<256x1024xf32>
    %25 = stablehlo.subtract %arg1, %24 : tensor<256x1024xf32>
    return %7, %16, %25 : tensor<f32>, tensor<1024x256xf32>, tensor<256x1024xf32>
  }
}
