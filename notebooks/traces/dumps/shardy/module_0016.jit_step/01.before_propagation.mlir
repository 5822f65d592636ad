module @jit_step attributes {mhlo.cross_program_prefetches = [], mhlo.input_output_alias = [], mhlo.is_dynamic = false, mhlo.num_partitions = 8 : i32, mhlo.use_auto_spmd_partitioning = false} {
  sdy.mesh @mesh = <["data"=4, "model"=2]> {stablehlo.mesh = {axes = [{name = "data", size = 4 : i64}, {name = "model", size = 2 : i64}]}}
  func.func @main(%arg0: tensor<1024x256xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"model"}, {}]>}, %arg1: tensor<256x1024xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"model"}]>}, %arg2: tensor<512x256xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"data"}, {}]>}) -> (tensor<f32>, tensor<1024x256xf32>, tensor<256x1024xf32>) {
    %0 = stablehlo.dot %arg2, %arg1, precision = [DEFAULT, DEFAULT] : (tensor<512x256xf32>, tensor<256x1024xf32>) -> tensor<512x1024xf32>
    %1 = sdy.constant dense<0.000000e+00> : tensor<f32>
    %2 = stablehlo.broadcast_in_dim %1, dims = [] : (tensor<f32>) -> tensor<512x1024xf32>
    %3 = stablehlo.maximum %0, %2 : tensor<512x1024xf32>
    %4 = stablehlo.dot %3, %arg0, precision = [DEFAULT, DEFAULT] : (tensor<512x1024xf32>, tensor<1024x256xf32>) -> tensor<512x256xf32>
    %5 = stablehlo.subtract %4, %arg2 : tensor<512x256xf32>
    %6 = stablehlo.multiply %5, %5 : tensor<512x256xf32>
    %7 = sdy.constant dense<0.000000e+00> : tensor<f32>
    %8 = stablehlo.reduce(%6 init: %7) applies stablehlo.add across dimensions = [0, 1] : (tensor<512x256xf32>, tensor<f32>) -> tensor<f32>
    %9 = sdy.constant dense<1.310720e+05> : tensor<f32>
    %10 = stablehlo.divide %8, %9 : tensor<f32>
    %11 = sdy.constant dense<2.000000e+00> : tensor<f32>
    %12 = stablehlo.broadcast_in_dim %11, dims = [] : (tensor<f32>) -> tensor<512x256xf32>
    %13 = stablehlo.multiply %5, %12 : tensor<512x256xf32>
    %14 = sdy.constant dense<7.62939453E-6> : tensor<f32>
    %15 = stablehlo.broadcast_in_dim %14, dims = [] : (tensor<f32>) -> tensor<512x256xf32>
    %16 = stablehlo.multiply %13, %15 : tensor<512x256xf32>
    %17 = stablehlo.dot_general %16, %3, contracting_dims = [0] x [0], precision = [DEFAULT, DEFAULT] : (tensor<512x256xf32>, tensor<512x1024xf32>) -> tensor<256x1024xf32>
    %18 = stablehlo.transpose %17, dims = [1, 0] {result_layout = dense<[0, 1]> : tensor<2xindex>, xla_shape = "f32[1024,256]{0,1}"} : (tensor<256x1024xf32>) -> tensor<1024x256xf32>
    %19 = sdy.constant dense<1.000000e-01> : tensor<f32>
    %20 = stablehlo.broadcast_in_dim %19, dims = [] : (tensor<f32>) -> tensor<1024x256xf32>
    %21 = stablehlo.multiply %18, %20 {result_layout = dense<[0, 1]> : tensor<2xindex>, xla_shape = "f32[1024,256]{0,1}"} : tensor<1024x256xf32>
    %22 = stablehlo.subtract %arg0, %21 : tensor<1024x256xf32>
    %23 = sdy.constant dense<0.000000e+00> : tensor<f32>
    %24 = stablehlo.broadcast_in_dim %23, dims = [] : (tensor<f32>) -> tensor<512x1024xf32>
    %25 = stablehlo.broadcast_in_dim %23, dims = [] : (tensor<f32>) -> tensor<512x1024xf32>
    %26 = stablehlo.compare GT, %0, %24 : (tensor<512x1024xf32>, tensor<512x1024xf32>) -> tensor<512x1024xi1>
    %27 = stablehlo.dot_general %16, %arg0, contracting_dims = [1] x [1], precision = [DEFAULT, DEFAULT] : (tensor<512x256xf32>, tensor<1024x256xf32>) -> tensor<512x1024xf32>
    %28 = stablehlo.select %26, %27, %25 : tensor<512x1024xi1>, tensor<512x1024xf32>
    %29 = stablehlo.dot_general %28, %arg2, contracting_dims = [0] x [0], precision = [DEFAULT, DEFAULT] : (tensor<512x1024xf32>, tensor<512x256xf32>) -> tensor<1024x256xf32>
    %30 = stablehlo.transpose %29, dims = [1, 0] {result_layout = dense<[0, 1]> : tensor<2xindex>, xla_shape = "f32[256,1024]{0,1}"} : (tensor<1024x256xf32>) -> tensor<256x1024xf32>
    %31 = sdy.constant dense<1.000000e-01> : tensor<f32>
    %32 = stablehlo.broadcast_in_dim %31, dims = [] : (tensor<f32>) -> tensor<256x1024xf32>
    %33 = stablehlo.multiply %30, %32 {result_layout = dense<[0, 1]> : tensor<2xindex>, xla_shape = "f32[256,1024]{0,1}"} : tensor<256x1024xf32>
    %34 = stablehlo.subtract %arg1, %33 : tensor<256x1024xf32>
    return %10, %22, %34 : tensor<f32>, tensor<1024x256xf32>, tensor<256x1024xf32>
  }
}
